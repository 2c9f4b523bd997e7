package solve_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/consumer"
	"milepost/internal/devstack"
	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/partition"
	"milepost/internal/publish"
	"milepost/internal/roadnet"
	"milepost/internal/solve"
	"milepost/internal/stream"
	"milepost/internal/tracefile"
	"milepost/internal/traffic"
)

const partitions = 2

// A9, I16, F21: the same input gives the same matched topic, byte for byte but for the owner's epoch, whether jobs are decided in the
// worker's process, by one matcher that keeps trips, or by three that have no room for them, and however many observations a job has.
func TestRemoteIsIdentical(t *testing.T) {
	graph, records := traces(t)
	local := &matchers{run: 1}
	want := work(t, graph, records, local)
	if len(want) == 0 {
		t.Fatal("nothing came out: the test shows nothing")
	}
	long := &matchers{run: 64}
	if d := cmp.Diff(want, work(t, graph, records, long)); d != "" {
		t.Errorf("jobs of many in process (-one by one +in runs):\n%.2000s", d)
	}
	if long.jobs.Load() > local.jobs.Load()/4 {
		t.Errorf("%d jobs with runs, %d without: the test shows little of them", long.jobs.Load(), local.jobs.Load())
	}
	one := &matchers{bytes: 1 << 26, n: 1, run: 7}
	if d := cmp.Diff(want, work(t, graph, records, one)); d != "" {
		t.Errorf("one matcher (-in process +remote):\n%.2000s", d)
	}
	if one.hits == 0 {
		t.Error("no request went without its trip: the test shows nothing of them")
	}
	three := &matchers{bytes: 2_000, n: 3, run: 5}
	if d := cmp.Diff(want, work(t, graph, records, three)); d != "" {
		t.Errorf("three matchers (-in process +remote):\n%.2000s", d)
	}
	if three.misses == 0 {
		t.Error("no trip was missing: the test shows nothing of it")
	}
}

// matchers are the replicas of a run, and what they counted.
type matchers struct {
	n            int          // 0: jobs are solved in the worker's process
	run          int          // observations a job
	jobs         atomic.Int64 // solved in process
	bytes        int64        // of each one's trips
	hits, misses int64
}

// traces are real drives where MILEPOST_DATA has them, else simulated ones on the demo's map.
func traces(t *testing.T) (*roadnet.Graph, []*kgo.Record) {
	t.Helper()
	var out []*kgo.Record
	add := func(vehicle string, at time.Time, o mapmatch.Observation) {
		value := fleet.AppendFix(nil, &fleet.Fix{Vehicle: vehicle, Observation: o})
		p := int32(vehicle[len(vehicle)-1]) % partitions
		out = append(out, &kgo.Record{Topic: "raw", Partition: p, Key: []byte(vehicle), Value: value, Timestamp: at})
	}
	if dir := os.Getenv("MILEPOST_DATA"); dir != "" {
		g := load(t, filepath.Join(dir, "maps", "paulmach-andorra-2018.osm.pbf"))
		for _, name := range []string{"traces/graphhopper/andorra_for_map_matching.gpx", "synthetic/andorra_10s.csv"} {
			f, err := os.Open(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for fix, err := range tracefile.Read(f, filepath.Base(name), tracefile.Options{}) {
				if err != nil || !fix.HasTime() {
					continue
				}
				if n++; n > 1500 {
					break
				}
				add(fix.Vehicle, fix.Time, mapmatch.Observation{
					Time: fix.Time, Point: roadnet.Point{Lon: fix.Lon, Lat: fix.Lat}, AccuracyM: fix.AccuracyM, SpeedMPS: fix.SpeedMPS, Heading: fix.HeadingDeg,
				})
			}
			_ = f.Close() // read only
		}
		return g, out
	}
	path, err := devstack.DelawareMap(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Skipf("no road map on this machine: %v", err)
	}
	g := load(t, path)
	vehicles, err := traffic.New(g, 12, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 * 60 {
		at := time.Date(2026, 5, 1, 8, 0, i/12, 0, time.UTC)
		fix := vehicles.Drive(i%12, at, time.Second)
		add(fix.Vehicle, at, mapmatch.Observation{Time: fix.Time, Point: fix.Point, SpeedMPS: fix.SpeedMPS, Heading: fix.Heading, AccuracyM: fix.AccuracyM})
	}
	return g, out
}

func load(t *testing.T, path string) *roadnet.Graph {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	g, err := roadnet.Import(t.Context(), f, filepath.Base(path), roadnet.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// must is for what a test needs before it can show anything.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// background runs parts until it is stopped.
type background struct {
	t      *testing.T
	cancel context.CancelFunc
	ctx    context.Context
	wg     sync.WaitGroup
}

func newBackground(t *testing.T) *background {
	t.Helper()
	b := &background{t: t}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

func (b *background) run(f func(context.Context) error) {
	b.wg.Go(func() {
		if err := f(b.ctx); err != nil {
			b.t.Error(err)
		}
	})
}

func (b *background) stop() {
	b.cancel()
	b.wg.Wait()
}

func pools(t *testing.T, g *roadnet.Graph, trips *fleet.Trips) *fleet.Pools {
	t.Helper()
	p, err := fleet.NewPools(fleet.PoolsConfig{Solvers: 1, Queue: 4096, Matcher: mapmatch.DefaultConfig(), Trips: trips})
	must(t, err)
	must(t, p.Use([]*roadnet.Graph{g}, time.Now()))
	return p
}

type local struct {
	*fleet.Pools
	jobs *atomic.Int64
}

func (l local) Submit(job partition.Dispatch, done func(partition.Decision, error)) bool {
	l.jobs.Add(1)
	return l.Pools.Submit(job.Request, done)
}

type far struct{ *solve.Remote }

func (f far) Attach(p stream.Partition, deliver func(partition.Result)) consumer.Desk {
	return f.Remote.Attach(p, deliver)
}

// work runs a worker over the records and gives the matched topic, each vehicle's records in order.
func work(t *testing.T, g *roadnet.Graph, records []*kgo.Record, m *matchers) map[string][]string {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(6, "p.solve."+fleet.DefaultRegion),
		kfake.SeedTopics(partitions, "raw", "p.ledger", "p.matched", "p.dead-letter", "p.solve-replies"))
	must(t, err)
	defer cluster.Close()
	log := slog.New(slog.DiscardHandler)
	common := publish.ClientConfig{Brokers: cluster.ListenAddrs(), Log: log}
	opts := publish.ClientOptions(common)
	client, err := kgo.NewClient(append(slices.Clone(opts), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumeTopics("p.matched"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
	must(t, err)
	defer client.Close()
	fresh := make([]*kgo.Record, len(records))
	for i, r := range records {
		fresh[i] = &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp}
	}
	must(t, client.ProduceSync(t.Context(), fresh...).FirstErr())

	below, above := newBackground(t), newBackground(t)
	defer below.stop()
	defer above.stop()
	store, membership := committest.NewMemoryStore(), &consumer.Membership{}
	topics := publish.Topics{Prefix: "p"}
	pub, err := publish.New(publish.Config{Client: common, Group: "g", Raw: "raw", Topics: topics, Instance: "one", Lanes: 2, Log: log}, membership, store)
	must(t, err)
	defer pub.Close()
	pipe := commit.NewPipeline(commit.DefaultPipelineConfig(), store, pub)
	below.run(pipe.Run)
	fcfg := fleet.DefaultConfig()
	fcfg.Group, fcfg.MatchedTopic, fcfg.DeadLetterTopic = "g", topics.Matched(), topics.DeadLetter()
	workload, err := fleet.New(fcfg, fleet.OneMap(fleet.MapOf(g)))
	must(t, err)
	cfg := consumer.DefaultConfig()
	cfg.Group, cfg.Topic, cfg.LedgerTopic, cfg.Instance, cfg.Lanes, cfg.Client = "g", "raw", topics.Ledger(), "one", 2, opts
	deps := consumer.Deps{
		Owners: store, Store: store, Pipeline: pipe, Formers: pub, Ledger: pub.Ledger(), Workload: workload, Membership: membership,
		Recovery: commit.Recovery{Store: store, Owners: store, Ledger: pub.Ledger(), Pipeline: pipe, Backoff: func(context.Context, int) error { return nil }},
		Rand:     rand.Reader, Log: log, Observer: consumer.Observer{GroupChanged: pub.Notify},
	}
	var kept []*fleet.Trips
	cfg.Partition.Run = m.run
	if m.n == 0 {
		p := pools(t, g, nil)
		below.run(p.Run)
		deps.Solver = local{p, &m.jobs}
	} else {
		remote, err := solve.NewRemote(solve.RemoteConfig{
			Client: opts, Raw: "raw", Requests: topics.Solve, Replies: topics.SolveReplies(), Secret: solve.Secret("s"), Log: log,
		})
		must(t, err)
		below.run(remote.Run)
		deps.Remote = far{remote}
		for i := range m.n {
			trips := fleet.NewTrips(m.bytes)
			kept = append(kept, trips)
			p := pools(t, g, trips)
			below.run(p.Run)
			replica, err := solve.NewMatcher(solve.MatcherConfig{
				Client: opts, Group: "m", Requests: topics.Solve(fleet.DefaultRegion), Replies: topics.SolveReplies(),
				Replica: fmt.Sprint("r", i), Secret: solve.Secret("s"), MaxInFlight: 64, Grace: 5 * time.Second, SessionTimeout: 10 * time.Second, Log: log,
			}, p)
			must(t, err)
			above.run(replica.Run)
		}
	}
	c, err := consumer.New(cfg, deps)
	must(t, err)
	worker := newBackground(t)
	defer worker.stop()
	worker.run(c.Run)
	out := read(t, client, len(records))
	for _, trips := range kept {
		s := trips.Stats()
		m.hits, m.misses = m.hits+s.Hits, m.misses+s.Misses+s.Mismatches
	}
	return out
}

// read gives n matched records as a stranger reads them, by vehicle, without the header that names the owner's epoch.
func read(t *testing.T, client *kgo.Client, n int) map[string][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out := map[string][]string{}
	for got := 0; got < n; {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d outputs within 2 minutes", got, n)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			got++
			line := ""
			for _, h := range r.Headers {
				if h.Key != "ce_epoch" {
					line += h.Key + "=" + string(h.Value) + "\n"
				}
			}
			out[string(r.Key)] = append(out[string(r.Key)], line+string(r.Value))
		})
	}
	return out
}
