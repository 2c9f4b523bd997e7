//go:build integration

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/test/stand"
)

// TestJudgeSeesFaults: the stranger that judges every run here finds what is
// lost, repeated, foreign and out of order, and does not count what an aborted
// transaction wrote.
func TestJudgeSeesFaults(t *testing.T) {
	s := useStack(t)
	ctx := stand.Limit(t, time.Minute)
	raw, prefix, _ := s.NewNames(t, 1)
	matched := prefix + ".matched"
	s.NewTopic(t, matched, 1)
	producer := s.Client(t, kgo.TransactionalID(prefix), kgo.DefaultProduceTopic(matched))
	plain := s.Client(t)
	for range 4 {
		if err := plain.ProduceSync(ctx, &kgo.Record{Topic: raw, Key: []byte("v"), Value: []byte("{}")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	transaction(ctx, t, producer, kgo.TryCommit, output(raw, 0), output(raw, 1))
	transaction(ctx, t, producer, kgo.TryAbort, output(raw, 2))
	if v := Judge(t, s, raw, matched); len(v.Lost) != 2 || v.Outputs != 2 || len(v.Disorder)+len(v.Repeated)+len(v.Foreign)+len(v.Bad) != 0 {
		t.Errorf("two of four done: %v", v)
	}
	transaction(ctx, t, producer, kgo.TryCommit, output(raw, 2), output(raw, 3))
	if v := Judge(t, s, raw, matched); !v.Clean() || v.Raw != 4 || v.Outputs != 4 {
		t.Errorf("all four done: %v", v)
	}
	transaction(ctx, t, producer, kgo.TryCommit, output(raw, 3), output(raw, 9), output(raw, 1))
	v := Judge(t, s, raw, matched)
	if len(v.Repeated) != 2 || len(v.Foreign) != 1 || len(v.Disorder) != 2 {
		t.Errorf("faults planted: %v", v)
	}
}

func output(raw string, offset int) *kgo.Record {
	return &kgo.Record{Key: []byte("v"), Headers: []kgo.RecordHeader{
		{Key: "ce_id", Value: fmt.Appendf(nil, "%s/1/0/%d/0", raw, offset)},
		{Key: "ce_revision", Value: fmt.Appendf(nil, "1.%d", offset)},
		{Key: "ce_subject", Value: []byte("v")},
	}}
}

func transaction(ctx context.Context, t *testing.T, client *kgo.Client, end kgo.TransactionEndTry, records ...*kgo.Record) {
	t.Helper()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := client.EndTransaction(ctx, end); err != nil {
		t.Fatal(err)
	}
}

// TestServersBreakAndComeBack: what the fault tests rest on. A killed server
// refuses, a paused one is silent, and both come back with their data at the
// same address.
func TestServersBreakAndComeBack(t *testing.T) {
	s := breakable(t)
	dsn := s.NewDatabase(t)
	raw, _, _ := s.NewNames(t, 1)
	broker := func(ctx context.Context) error {
		client, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers...), kgo.RetryTimeout(time.Second), kgo.DefaultProduceTopic(raw))
		if err != nil {
			return err
		}
		defer client.Close()

		return client.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr()
	}
	database := func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}

		return errors.Join(conn.Ping(ctx), conn.Close(ctx))
	}
	for _, c := range []struct {
		name   string
		server Server
		use    func(context.Context) error
	}{{"broker", s.Broker, broker}, {"database", s.Database, database}} {
		t.Run(c.name, func(t *testing.T) {
			must(t, c.use(stand.Limit(t, 20*time.Second)))
			must(t, c.server.Pause())
			if err := c.use(stand.Limit(t, 2*time.Second)); err == nil {
				t.Error("it answers while paused")
			}
			must(t, c.server.Resume())
			must(t, c.use(stand.Limit(t, 20*time.Second)))
			must(t, c.server.Kill())
			if err := c.use(stand.Limit(t, 2*time.Second)); err == nil {
				t.Error("it answers after a kill")
			}
			must(t, c.server.Restart(stand.Limit(t, 90*time.Second)))
			stand.Eventually(t, 30*time.Second, "use it again", func(context.Context) error { return c.use(stand.Limit(t, 5*time.Second)) })
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestBuildRuns: the program builds as released and says what it is.
func TestBuildRuns(t *testing.T) {
	p := stand.Run(t, "version", BuildOrchestrator(t), nil, "version")
	if code := p.Wait(20 * time.Second); code != 0 {
		t.Errorf("version exits %d", code)
	}
	p.WaitLine(time.Second, "")
}
