package main

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/commit"
	"milepost/internal/devstack"
	"milepost/internal/pgstore"
	"milepost/internal/stream"
)

// yard is a database and brokers with a group that has left its marks, and nobody running.
type yard struct {
	t     *testing.T
	dsn   string
	addrs []string
	store *pgstore.Store
}

func newYard(t *testing.T) *yard {
	t.Helper()
	postgres, err := devstack.StartPostgres(t.Context(), devstack.PostgresConfig{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := postgres.Stop(); err != nil {
			t.Error(err)
		}
	})
	if _, err := pgstore.Migrate(t.Context(), postgres.DSN(), pgstore.MigrateUp); err != nil {
		t.Fatal(err)
	}
	cfg := pgstore.DefaultConfig()
	cfg.DSN = postgres.DSN()
	store, err := pgstore.Connect(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	broker, err := devstack.StartBroker(devstack.BrokerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Stop)
	return &yard{t: t, dsn: postgres.DSN(), addrs: broker.Addrs(), store: store}
}

// topic makes the raw topic with so many partitions, each with n records.
func (y *yard) topic(partitions int32, n int) {
	y.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(y.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		y.t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(y.t.Context(), partitions, 1, nil, "raw"); err != nil {
		y.t.Fatal(err)
	}
	for p := range partitions {
		for range n {
			if err := client.ProduceSync(y.t.Context(), &kgo.Record{Topic: "raw", Partition: p, Value: []byte("x")}).FirstErr(); err != nil {
				y.t.Fatal(err)
			}
		}
	}
}

// own acquires a partition for an instance.
func (y *yard) own(n int32, instance string, at int64) *commit.Tenure {
	y.t.Helper()
	p := stream.Partition{Topic: "raw", Number: n}
	rows, err := y.store.Epochs(y.t.Context(), "g", []stream.Partition{p})
	if err != nil {
		y.t.Fatal(err)
	}
	nonce := stream.Nonce{byte(rows[0].Epoch + 1)}
	won, err := y.store.Acquire(y.t.Context(), []commit.Claim{{
		Group: "g", Partition: p, Expected: rows[0].Epoch, Nonce: nonce, Generation: 5, MemberID: "m", Instance: instance, Lanes: 3,
		TopicID: [16]byte{1}, TopicGeneration: 1, LedgerTopicID: [16]byte{2}, Partitions: 2,
		First: stream.Frontier{Next: stream.Revision{Generation: 1, Offset: at}, LeaderEpoch: -1},
	}})
	if err != nil || !won[0] {
		y.t.Fatal(won, err)
	}
	return commit.NewTenure(commit.Ownership{Group: "g", Partition: p, TopicGeneration: 1, Epoch: rows[0].Epoch + 1, Nonce: nonce, MemberID: "m"})
}

func (y *yard) setAside(tn *commit.Tenure, key string, offsets ...int64) {
	y.t.Helper()
	for _, o := range offsets {
		errs, err := y.store.Quarantine(y.t.Context(), []commit.Quarantined{{
			Tenure: tn, Key: stream.Key(key), Revision: stream.Revision{Generation: 1, Offset: o}, Class: "permanent", Reason: "no such road",
			At: time.Now(), Record: stream.Record{Partition: tn.Partition, Offset: o, Key: []byte(key), Value: []byte(`{"lon":<1>}`)},
		}})
		if err != nil || errs[0] != nil {
			y.t.Fatal(err, errs)
		}
	}
}

func (y *yard) run(args ...string) outcome {
	y.t.Helper()
	return orchestrator(y.t, "", append(args, "--dsn", y.dsn, "--group", "g", "--raw", "raw")...)
}

// owner executes requests as a worker's machine would: it says what it was asked.
func (y *yard) owner(tn *commit.Tenure) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(y.t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			requests, err := y.store.Requests(ctx, "g", []stream.Partition{tn.Partition}, 10)
			if err != nil {
				continue
			}
			for _, r := range requests {
				a := commit.Answer{Request: r.ID, Failed: r.Key == "stubborn", Outcome: string(r.Kind) + " was asked"}
				if err := y.store.Answer(ctx, tn, a); err != nil {
					y.t.Error(err)
				}
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// A17, A19, F30, H10(d): what an operator sees and asks for, without a live worker and with one.
func TestOperatorVerbs(t *testing.T) {
	y := newYard(t)
	y.topic(2, 30)
	a, b := y.own(0, "worker-a", 10), y.own(1, "worker-b", 30)
	errs, err := y.store.SaveFrontier(t.Context(), []commit.FrontierWrite{{
		Tenure: a, Frontier: stream.Frontier{Next: stream.Revision{Generation: 1, Offset: 12}}, Live: commit.Live{OldestPending: time.Second, Waiting: 2, Blocked: 1},
	}})
	if err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	y.setAside(a, "stubborn", 3, 5)
	y.setAside(a, "meek", 7)
	if err := y.store.Release(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	t.Run("status", y.status)
	t.Run("partition", y.partition)
	t.Run("quarantine list and show", y.quarantineLists)
	t.Run("without an owner", y.nobody)
	t.Run("with an owner", func(t *testing.T) {
		defer y.owner(a)()
		y.somebody(t)
	})
}

func (y *yard) status(t *testing.T) {
	got := y.run("status", "--json", "--brokers", strings.Join(y.addrs, ","))
	var facts map[string]any
	if err := json.Unmarshal([]byte(got.out), &facts); err != nil || got.code != 0 {
		t.Fatalf("%+v: %v", got, err)
	}
	first := facts["partitions"].([]any)[0].(map[string]any)
	if ms := first["oldest_pending_ms"].(float64); ms < 1000 {
		t.Errorf("oldest pending is %v ms", ms)
	}
	first["oldest_pending_ms"] = 0.0
	want := map[string]any{
		"group": "g", "raw": "raw",
		"partitions": []any{
			map[string]any{
				"partition": 0.0, "owner": "worker-a", "epoch": 1.0, "generation": 5.0, "frontier": 12.0, "end_offset": 30.0, "lag": 18.0,
				"prepared": 0.0, "oldest_pending_ms": 0.0, "waiting": 2.0, "blocked": 1.0, "quarantined": 2.0,
			},
			map[string]any{
				"partition": 1.0, "owner": "", "epoch": 1.0, "generation": 5.0, "frontier": 30.0, "end_offset": 30.0, "lag": 0.0,
				"prepared": 0.0, "oldest_pending_ms": 0.0, "waiting": 0.0, "blocked": 0.0, "quarantined": 0.0,
			},
		},
	}
	if diff := cmp.Diff(want, facts); diff != "" {
		t.Errorf("status --json (-want +got):\n%s", diff)
	}
	if got := y.run("status"); got.code != 0 || !strings.Contains(got.out, "worker-a") || !strings.Contains(got.out, "LAG") {
		t.Errorf("status: %+v", got)
	}
	elsewhere := []string{"--dsn", y.dsn, "--group", "other", "--raw", "nowhere"}
	for _, verb := range [][]string{{"status"}, {"partition", "list"}} {
		got := orchestrator(t, "", append(verb, elsewhere...)...)
		if got.code != exitDone || !strings.HasPrefix(got.out, "no worker of group other has ever run on topic nowhere") {
			t.Errorf("%v of an unknown group: %+v", verb, got)
		}
		got = orchestrator(t, "", append(append(verb, elsewhere...), "--brokers", strings.Join(y.addrs, ","))...)
		if got.code != exitFailed || got.out != "" || got.err != "orchestrator: the brokers have no topic nowhere (another name: --raw)\n" {
			t.Errorf("%v of an unknown topic: %+v", verb, got)
		}
	}
	if got := y.run("status", "--brokers", "127.0.0.1:1"); got.code != exitFailed || !strings.Contains(got.out, "worker-a") || got.err == "" {
		t.Errorf("status without brokers: %+v: want what the database knows, and a failure", got)
	}
}

func (y *yard) partition(t *testing.T) {
	got := y.run("partition", "list", "--json")
	var list []map[string]any
	if err := json.Unmarshal([]byte(got.out), &list); err != nil || len(list) != 2 || list[0]["instance"] != "worker-a" || list[1]["released"] != true {
		t.Errorf("partition list: %+v: %v", got, err)
	}
	if got := y.run("partition", "show", "--partition", "0"); got.code != 0 || !strings.Contains(got.out, "observations in quarantine") {
		t.Errorf("partition show: %+v", got)
	}
	if got := y.run("partition", "show", "--partition", "9"); got.code != exitFailed || !strings.Contains(got.err, "never owned") {
		t.Errorf("partition show of none: %+v", got)
	}
}

func (y *yard) quarantineLists(t *testing.T) {
	var list []map[string]any
	got := y.run("quarantine", "list", "--json")
	if err := json.Unmarshal([]byte(got.out), &list); err != nil || len(list) != 2 || list[0]["key"] != "stubborn" || list[0]["observations"] != 2.0 {
		t.Errorf("quarantine list: %+v: %v", got, err)
	}
	got = y.run("quarantine", "show", "--key", "stubborn", "--json")
	if err := json.Unmarshal([]byte(got.out), &list); err != nil || len(list) != 2 || list[1]["revision"] != "1.5" || list[0]["value"] != `{"lon":<1>}` {
		t.Errorf("quarantine show: %+v: %v", got, err)
	}
	if got := y.run("quarantine", "show", "--key", "nobody"); got.code != 0 || !strings.Contains(got.out, "nothing of key nobody") {
		t.Errorf("quarantine show of nothing: %+v", got)
	}
}

// nobody: a command that no owner executes ends after its bound, says why, and leaves nothing behind.
func (y *yard) nobody(t *testing.T) {
	got := y.run("quarantine", "release", "--key", "meek", "--wait", "1500ms", "--json")
	if got.code != exitFailed || !strings.Contains(got.err, "worker-a, last seen") || !strings.Contains(got.err, "waiting for the partitions' owners: 0 of 1") {
		t.Errorf("release without an owner: %+v", got)
	}
	var facts requestFacts
	if err := json.Unmarshal([]byte(got.out), &facts); err != nil || facts.Withdrawn != 1 {
		t.Errorf("release without an owner: %s: %v", got.out, err)
	}
	waiting, err := y.store.Requests(t.Context(), "g", []stream.Partition{{Topic: "raw", Number: 0}}, 10)
	if err != nil || len(waiting) != 0 {
		t.Errorf("left behind: %+v, %v", waiting, err)
	}
	for says, line := range map[string][]string{
		"add --yes":               {"quarantine", "discard", "--key", "meek"},
		"replay every":            {"quarantine", "release", "--all"},
		"either --key K or --all": {"quarantine", "release"},
		"must be set":             {"partition", "seek", "--partition", "0"},
	} {
		if got := y.run(line...); got.code != exitUsage || !strings.Contains(got.err, says) {
			t.Errorf("%v: %+v, want exit code 2 and %q", line, got, says)
		}
	}
	for says, line := range map[string][]string{
		`nothing of key "nobody"`:  {"quarantine", "release", "--key", "nobody"},
		"goes forward only":        {"partition", "seek", "--partition", "0", "--offset", "12"},
		"was never owned by group": {"partition", "seek", "--partition", "7", "--offset", "12"},
	} {
		if got := y.run(line...); got.code != exitFailed || !strings.Contains(got.err, says) {
			t.Errorf("%v: %+v, want exit code 1 and %q", line, got, says)
		}
	}
}

func (y *yard) somebody(t *testing.T) {
	t.Helper()
	got := y.run("quarantine", "release", "--all", "--yes", "--json")
	var facts requestFacts
	if err := json.Unmarshal([]byte(got.out), &facts); err != nil || got.code != exitFailed || facts.Done != 1 || facts.Failed != 1 {
		t.Errorf("release --all: %+v: %v", got, err)
	}
	if got := y.run("quarantine", "discard", "--key", "meek", "--yes"); got.code != 0 || !strings.Contains(got.out, "discard was asked") {
		t.Errorf("discard: %+v", got)
	}
	if got := y.run("partition", "seek", "--partition", "0", "--offset", "20", "--json"); got.code != 0 || !strings.Contains(got.out, "seek was asked") {
		t.Errorf("seek: %+v", got)
	}
}

// remake deletes and makes a topic, or grows it.
func (y *yard) remake(topic string, partitions int32, grow bool) {
	y.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(y.addrs...))
	if err != nil {
		y.t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if grow {
		if _, err := admin.UpdatePartitions(y.t.Context(), int(partitions), topic); err != nil {
			y.t.Fatal(err)
		}
		return
	}
	if _, err := admin.DeleteTopics(y.t.Context(), topic); err != nil {
		y.t.Fatal(err)
	}
	if _, err := admin.CreateTopic(y.t.Context(), partitions, 1, nil, topic); err != nil {
		y.t.Fatal(err)
	}
}

// bind makes the group's rows those of the topics that the brokers have.
func (y *yard) bind() {
	y.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(y.addrs...))
	if err != nil {
		y.t.Fatal(err)
	}
	defer client.Close()
	now, err := readTopics(y.t.Context(), client, "raw", "p.ledger")
	if err != nil {
		y.t.Fatal(err)
	}
	if _, err := y.store.OpenGeneration(y.t.Context(), pgstore.Generation{
		Group: "g", Topic: "raw", TopicID: now.raw.ID, LedgerTopicID: now.ledger.ID, Partitions: int32(len(now.raw.Partitions)),
	}); err != nil {
		y.t.Fatal(err)
	}
}

// P29, P31, P32, H12: the commands that the worker's refusals name do what they say, and refuse what would lose something.
func TestPartitionReset(t *testing.T) {
	y := newYard(t)
	y.topic(2, 5)
	client, err := kgo.NewClient(kgo.SeedBrokers(y.addrs...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 2, 1, nil, "p.ledger"); err != nil {
		t.Fatal(err)
	}
	client.Close()
	y.own(0, "worker-a", 3)
	y.own(1, "worker-b", 5)
	y.bind()
	brokers := []string{"--brokers", strings.Join(y.addrs, ","), "--prefix", "p"}
	run := func(code int, says string, line ...string) {
		t.Helper()
		got := y.run(append(append([]string{"partition"}, line...), brokers...)...)
		if got.code != code || !strings.Contains(got.out+got.err, says) {
			t.Errorf("partition %v: %+v, want exit code %d and %q", line, got, code, says)
		}
	}
	frontiers := func(want string) {
		t.Helper()
		var got []string
		rows, err := y.store.Status(t.Context(), "g", "raw")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			got = append(got, r.Frontier.Next.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("frontiers are %q, want %s", got, want)
		}
	}
	frontiers("2.3 2.5")
	run(exitUsage, "add --yes", "reset")
	run(exitFailed, "there is nothing to open", "reset", "--yes")
	run(exitUsage, "the log of partition 1 reaches from 0 to 5", "reset", "--yes", "--offset", "1=9")
	run(exitUsage, "no partition", "reset", "--yes", "--offset", "7=9")
	run(exitDone, `"starts":{"1":2}`, "reset", "--yes", "--offset", "1=2", "--json")
	frontiers("3.3 3.2")
	run(exitDone, "topic generation 4 is open", "reset", "--yes", "--earliest")
	frontiers("4.0 4.0")

	y.remake("raw", 3, true)
	run(exitFailed, "partition 0 is done up to 0 of 5", "reset", "--yes")
	run(exitDone, "partition 2 begins at 0", "reset", "--yes", "--unordered")
	frontiers("5.0 5.0 5.0")

	y.remake("raw", 3, false)
	run(exitDone, "topic generation 6", "reset", "--yes")
	frontiers("6.0 6.0 6.0")

	y.remake("p.ledger", 3, false)
	run(exitFailed, "orchestrator partition ledger --accept --yes", "reset", "--yes", "--earliest")
	run(exitUsage, "add --accept --yes", "ledger")
	run(exitDone, "bound to ledger p.ledger", "ledger", "--accept", "--yes")
	run(exitDone, "topic generation 7", "reset", "--yes", "--earliest")
}
