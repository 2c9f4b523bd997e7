package solve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"milepost/internal/commit"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	requests = "p.solve.default"
	replies  = "p.solve-replies"
)

// rig is a broker with a worker's side and as many matchers as a test starts, all in one bubble of virtual time: a time-out passes when
// nobody has anything left to do, however slow the machine is.
type rig struct {
	t       *testing.T
	opts    []kgo.Opt
	client  *kgo.Client
	remote  *Remote
	results chan partition.Result
	desk    *Desk
}

// bubble runs a test on a rig.
func bubble(t *testing.T, secret Secret, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newRig(t, secret)) })
}

func newRig(t *testing.T, secret Secret) *rig {
	t.Helper()
	network := &kfake.VirtualNetwork{}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ListenFn(network.Listen), kfake.Ports(9092),
		kfake.SeedTopics(6, requests), kfake.SeedTopics(2, replies, "raw"), kfake.GroupMinSessionTimeout(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	dial := func(ctx context.Context, kind, address string) (net.Conn, error) {
		return network.DialContext(ctx, kind, address)
	}
	r := &rig{t: t, opts: []kgo.Opt{kgo.SeedBrokers("localhost:9092"), kgo.Dialer(dial)}, results: make(chan partition.Result, 1000)}
	r.client, err = kgo.NewClient(append(r.opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.client.Close)
	r.remote, err = NewRemote(RemoteConfig{
		Client: r.opts, Raw: "raw", Requests: func(region string) string { return "p.solve." + region }, Replies: replies,
		Secret: secret, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, r.remote.Run)
	r.desk = r.remote.Attach(stream.Partition{Topic: "raw", Number: 1}, func(res partition.Result) { r.results <- res })
	t.Cleanup(r.desk.Close)
	return r
}

// run runs something until the test ends, or what it returns is called.
func run(t *testing.T, f func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (r *rig) matcher(name string, pool Pool, tune ...func(*MatcherConfig)) (m *Matcher, stop func()) {
	r.t.Helper()
	cfg := MatcherConfig{
		Client: r.opts, Group: "m", Requests: requests, Replies: replies, Replica: name, MaxInFlight: 8, Grace: 5 * time.Second,
		SessionTimeout: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range tune {
		f(&cfg)
	}
	m, err := NewMatcher(cfg, pool)
	if err != nil {
		r.t.Fatal(err)
	}
	return m, run(r.t, m.Run)
}

// settled says whether so many members of the matchers' group read the same number of partitions each.
func (r *rig) settled(members int) bool {
	r.t.Helper()
	groups, err := kadm.NewClient(r.client).DescribeGroups(r.t.Context(), "m")
	if err != nil {
		r.t.Fatal(err)
	}
	g := groups["m"]
	if g.State != "Stable" || len(g.Members) != members {
		return false
	}
	for _, m := range g.Members {
		c, ok := m.Assigned.AsConsumer()
		if !ok || len(c.Topics) != 1 || len(c.Topics[0].Partitions) != 6/members {
			return false
		}
	}
	return true
}

// known counts the partitions of the requests that a replica is known to read.
func (r *rig) known(replica string) (n int) {
	r.remote.mu.Lock()
	defer r.remote.mu.Unlock()
	if regions := r.remote.regions["default"]; regions != nil {
		for _, v := range regions.vias {
			if v.reader == replica {
				n++
			}
		}
	}
	return n
}

// send gives a job to the desk as soon as it takes it.
func (r *rig) send(e partition.Dispatch) {
	r.t.Helper()
	r.eventually("the desk takes a job", func() bool { return r.desk.Submit(e) })
}

func (r *rig) eventually(what string, cond func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	for !cond() {
		if !pause(ctx, 5*time.Millisecond) {
			r.t.Fatalf("after 20 s still not: %s", what)
		}
	}
}

func (r *rig) result() partition.Result {
	r.t.Helper()
	select {
	case res := <-r.results:
		return res
	case <-time.After(20 * time.Second):
		r.t.Fatal("no result within 20 s")
		return partition.Result{}
	}
}

func dispatch(key string, n int64, attempt int) partition.Dispatch {
	return partition.Dispatch{
		Job: partition.JobID{byte(n), 7}, Key: stream.Key(key), Revision: stream.Revision{Generation: 1, Offset: n},
		Request: fmt.Appendf(nil, "%s-%d", key, n), Region: "default", Attempt: attempt,
	}
}

// poolFunc solves in the calling goroutine.
type poolFunc func(request string) (partition.Decision, error)

func (f poolFunc) Submit(request []byte, done func(partition.Decision, error)) bool {
	done(f(string(request)))
	return true
}

func echo(request string) (partition.Decision, error) {
	return partition.Decision{Kind: partition.Solved, Answer: []byte("of " + request)}, nil
}

// A9, F15, F31, I8: requests reach a matcher and its replies the machine that asked, through records that are malformed, forged or for
// nobody, on both topics: those are counted and stop nothing.
func TestSolveThroughJunk(t *testing.T) {
	secret := Secret("s3cret")
	bubble(t, secret, func(r *rig) {
		m, _ := r.matcher("m1", poolFunc(echo), func(c *MatcherConfig) { c.Secret = secret })
		r.send(dispatch("warm", 1, 0))
		r.result()
		ours := &reply{job: &job{raw: stream.Partition{Topic: "raw", Number: 1}, key: "a"}, replica: "x", decision: partition.Decision{Kind: partition.Solved}}
		good, err := encodeReply(ours)
		if err != nil {
			r.t.Fatal(err)
		}
		ours.job.raw.Topic = "another"
		foreign, err := encodeReply(ours)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, rec := range []*kgo.Record{
			secret.record(replies, 1, nil, []byte{0, 255}),
			secret.record(replies, 1, nil, nil),
			{Topic: replies, Partition: 1, Value: good},                                                         // not signed
			Secret("other").record(replies, 1, nil, good),                                                       // signed by somebody else
			{Topic: replies, Partition: 1, Value: good, Headers: secret.record(requests, 1, nil, good).Headers}, // signed for another topic
			secret.record(replies, 1, nil, foreign),                                                             // for another raw topic
			secret.record(replies, 0, nil, good),                                                                // in another partition's place
			secret.record(requests, 0, nil, []byte("junk")),
			Secret("other").record(requests, 1, nil, good),
		} {
			if err := r.client.ProduceSync(r.t.Context(), rec).FirstErr(); err != nil {
				r.t.Fatal(err)
			}
		}
		e := dispatch("a", 2, 0)
		r.send(e)
		got := r.result()
		want := partition.Result{Job: e.Job, Key: "a", Revision: e.Revision, Decision: partition.Decision{Kind: partition.Solved, Answer: []byte("of a-2")}, Replica: got.Replica}
		if d := cmp.Diff(want, got); d != "" || got.Replica == "" {
			r.t.Errorf("%s%+v", d, got)
		}
		r.eventually("all junk is counted", func() bool {
			s, n := r.remote.Stats(), m.Stats()
			// The empty value is a reply of version 0; the junk in another partition is not read at all.
			return s.Malformed == 2 && s.Forged == 3 && s.Stray == 1 && n.Malformed == 1 && n.Forged == 1
		})
		select {
		case res := <-r.results:
			r.t.Errorf("junk came through: %+v", res)
		default:
		}
	})
}

// A9: a request without the trip is for the replica that it names; any other says that it does not hold the trip, and so does the
// right one when it has forgotten. Errors keep their class.
func TestOutcomes(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		r.matcher("m1", poolFunc(func(request string) (partition.Decision, error) {
			switch request {
			case "a-2":
				return partition.Decision{}, fmt.Errorf("look it up: %w", partition.ErrTripMiss)
			case "a-3":
				return partition.Decision{}, fmt.Errorf("cannot be: %w", commit.ErrPermanent)
			case "a-4":
				return partition.Decision{}, errors.New("another graph")
			}
			return echo(request)
		}))
		r.send(dispatch("a", 1, 0))
		first := r.result()
		for n, want := range []partition.Result{
			0: {Decision: partition.Decision{Kind: partition.Solved, Answer: []byte("of a-10")}, Replica: first.Replica},
			1: {TripMiss: true},
		} {
			e := dispatch("a", int64(10+n), 0)
			e.Replica = first.Replica
			if n == 1 {
				e.Replica += "-before"
			}
			r.send(e)
			got := r.result()
			if got.TripMiss != want.TripMiss || string(got.Decision.Answer) != string(want.Decision.Answer) || got.Job != e.Job {
				r.t.Errorf("to %s: %+v", e.Replica, got)
			}
		}
		for n, class := range map[int64]commit.Class{2: 0, 3: commit.Permanent, 4: commit.Transient} {
			r.send(dispatch("a", n, 0))
			got := r.result()
			if n == 2 && (!got.TripMiss || got.Err != nil) || n != 2 && (got.Err == nil || commit.ClassOf(got.Err) != class) {
				r.t.Errorf("request %d: %+v", n, got)
			}
		}
	})
}

// stuckPool takes requests and answers none until it is freed, as a process that hangs while it still heartbeats.
type stuckPool struct {
	mu   sync.Mutex
	held []func()
	free bool
}

func (p *stuckPool) Submit(request []byte, done func(partition.Decision, error)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer := func() { done(echo(string(request))) }
	if p.free {
		answer()
	} else {
		p.held = append(p.held, answer)
	}
	return true
}

func (p *stuckPool) goOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.held {
		f()
	}
	p.held, p.free = nil, true
}

// A9, F20: a replica that hangs costs a key one retry: the second attempt reaches the other replica, and the next job's first one does
// already. When it goes on its late answers come too, and it is trusted again.
func TestHangingReplicaCostsOneRetry(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		stuck := &stuckPool{}
		r.matcher("good", poolFunc(echo))
		r.matcher("stuck", stuck, func(c *MatcherConfig) { c.MaxInFlight = 1000 })
		r.eventually("each replica reads half of the partitions", func() bool { return r.settled(2) })
		r.eventually("it is known what the good one reads", func() bool {
			r.desk.Submit(dispatch(fmt.Sprint("k", time.Now().UnixNano()), 200, 0))
			return r.known("good") == 3
		})
		synctest.Wait()
		for len(r.results) > 0 {
			<-r.results
		}
		hung := 0
		for i := range 24 {
			key := fmt.Sprint("v", i)
			r.send(dispatch(key, int64(i), 0))
			select {
			case <-r.results:
			case <-time.After(300 * time.Millisecond):
				hung++
				r.send(dispatch(key, int64(i), 1))
				if got := r.result(); string(got.Key) != key {
					r.t.Errorf("%s: got %+v", key, got)
				}
			}
		}
		if hung == 0 || hung > 3 {
			r.t.Errorf("%d of 24 keys met the replica that hangs, want one a partition, for nobody is known to read those", hung)
		}
		for i := range 24 {
			r.send(dispatch(fmt.Sprint("v", i), int64(100+i), 0))
			if got := r.result(); got.Revision.Offset != int64(100+i) {
				r.t.Errorf("next job: got %+v", got)
			}
		}
		stuck.goOn()
		r.eventually("its late answers come", func() bool { return len(r.results) >= hung })
	})
}

// A15, S7: a matcher that is told to stop answers what it has begun, and leaves the rest to others.
func TestMatcherDrains(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		stuck := &stuckPool{}
		m, stop := r.matcher("m1", stuck, func(c *MatcherConfig) { c.MaxInFlight = 4 })
		for i := range 10 {
			r.send(dispatch(fmt.Sprint("k", i), int64(i), 0))
		}
		r.eventually("it takes what it has room for", func() bool { return m.Stats().InFlight == 4 })
		if got := m.Stats().Requests; got != 4 {
			r.t.Errorf("%d requests taken, want 4 (S5)", got)
		}
		go func() {
			pause(context.Background(), 100*time.Millisecond)
			stuck.mu.Lock()
			for _, f := range stuck.held {
				f()
			}
			stuck.held, stuck.free = nil, true
			stuck.mu.Unlock()
		}()
		stop()
		if got := m.Stats(); got.InFlight != 0 || got.Solved < 4 || got.Unsent != 0 {
			r.t.Errorf("after the drain: %+v", got)
		}
		for range m.Stats().Solved {
			r.result()
		}
	})
}
