package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/doctor"
)

// P19, P21, F22, H16: doctor names each thing that a promise rests on, with a remedy for what is not so, and fails when one fails.
func TestDoctor(t *testing.T) {
	y := newYard(t)
	y.topic(2, 1)
	client, err := kgo.NewClient(kgo.SeedBrokers(y.addrs...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for topic, settings := range map[string]map[string]string{
		"p.ledger":  {"cleanup.policy": "compact"},
		"p.matched": {"min.insync.replicas": "1"},
	} {
		configs := map[string]*string{}
		for k, v := range settings {
			configs[k] = &v
		}
		if _, err := admin.CreateTopic(t.Context(), 2, 1, configs, topic); err != nil {
			t.Fatal(err)
		}
	}
	got := y.run("doctor", "--brokers", strings.Join(y.addrs, ","), "--prefix", "p", "--json")
	var facts doctorFacts
	if err := json.Unmarshal([]byte(got.out), &facts); err != nil || got.code != exitFailed {
		t.Fatalf("doctor: %+v: %v", got, err)
	}
	byName := map[string]doctor.Finding{}
	for _, f := range facts.Checks {
		byName[f.Area+" "+f.Name] = f
		if f.State != doctor.OK && f.Remedy == "" {
			t.Errorf("no remedy: %+v", f)
		}
	}
	for name, want := range map[string]doctor.State{
		"kafka reachable": doctor.OK, "kafka brokers": doctor.Warn, "kafka version": doctor.OK, "kafka ACL group": doctor.OK,
		"kafka ACL transactional ids": doctor.OK, "topics raw": doctor.OK, "topics p.dead-letter": doctor.Fail, "topics p.ledger": doctor.OK,
		"topics p.ledger partitions": doctor.OK, "topics p.ledger cleanup.policy": doctor.Fail, "topics p.matched min.insync.replicas": doctor.Warn,
		"topics clock": doctor.OK, "postgres reachable": doctor.OK, "postgres version": doctor.OK, "postgres primary": doctor.OK,
		"postgres fsync": doctor.Fail, "postgres synchronous_commit": doctor.OK, "postgres synchronous standby": doctor.Warn,
		"postgres schema": doctor.OK, "postgres clock": doctor.OK, "postgres connections": doctor.OK,
	} {
		if f, there := byName[name]; !there || f.State != want {
			t.Errorf("%s: %+v, want it %s", name, f, want)
		}
	}
	if got := y.run("doctor", "--brokers", "127.0.0.1:1", "--prefix", "p"); got.code != exitFailed || !strings.Contains(got.out, "check --brokers") ||
		!strings.Contains(got.out, "postgres") {
		t.Errorf("doctor without brokers: %+v", got)
	}
}
