//go:build takeover

package takeover_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"milepost/test/stand"
)

var (
	many  = flag.Int("keys", 1_000_000, "keys of the large job")
	table = flag.String("table", "", "file for the times; empty: standard output")
	kills = flag.Int("kills", 3, "kills that are measured at least")
)

const (
	few        = 1000
	partitions = 4
	session    = 3 * time.Second
	bound      = time.Second
	// apart is what the two sizes may differ by: far more than noise of a few milliseconds, far less than a restore of a million keys takes.
	apart = 500 * time.Millisecond
	// tries bounds the kills on a machine that is busy with something else.
	tries = 8
)

// shared is what the tests share.
var shared stand.Shared

func TestMain(m *testing.M) {
	os.Exit(shared.Main(m, stand.Config{SessionTimeout: session, Safe: true}))
}

// A15, P34: an owner is killed with -9 while records flow. From the group's assignment to the first output of each of its partitions it takes
// at most a second, and the number of keys in Postgres does not matter: states are restored key by key as their records come.
// The best of some kills counts, for the machine may be busy; every kill is judged for what came out.
func TestTakeover(t *testing.T) {
	best := map[int]time.Duration{}
	report := ""
	for _, keys := range []int{few, *many} {
		took := measure(t, keys, func(sofar time.Duration) bool {
			return sofar <= bound && (keys == few || sofar <= best[few]+apart)
		})
		best[keys] = slices.Min(took)
		report += fmt.Sprintf("from assignment to first output with %d keys: best %s of %v\n", keys, best[keys], took)
	}
	write(t, report)
	if best[few] > bound || best[*many] > bound {
		t.Errorf("from assignment to first output: %s with %d keys, %s with %d; the bound is %s", best[few], few, best[*many], *many, bound)
	}
	if best[*many]-best[few] > apart {
		t.Errorf("from assignment to first output: %s with %d keys, but %s with %d", best[few], few, best[*many], *many)
	}
}

// measure kills the owner of half of the partitions again and again, as often as asked and until the best is enough.
func measure(t *testing.T, keys int, enough func(time.Duration) bool) []time.Duration {
	t.Helper()
	j := shared.Stand.NewJob(t, shared.Program, partitions)
	began := time.Now()
	if err := j.Seed(t.Context(), keys, 41); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d keys seeded in %s", keys, time.Since(began).Round(time.Millisecond))
	for p := range int32(partitions) { // the records at offset 0, which the seeded checkpoints speak of
		if err := j.Hold(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	watch := j.Watch(t)
	load := &stand.Load{Keys: keys, Rate: 400}
	stop := load.Start(t.Context(), j)
	owner, standby := worker(j, 0), worker(j, 1)
	var took []time.Duration
	for n := 2; len(took) < *kills || len(took) < tries && !enough(slices.Min(took)); n++ {
		stand.Eventually(t, time.Minute, "both have partitions and have recovered them", func(ctx context.Context) error { return halved(ctx, j) })
		took = append(took, takeover(t, j, watch, owner, standby))
		owner, standby = standby, worker(j, n)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	j.Drained(time.Minute)
	for _, p := range []*stand.Process{owner, standby} {
		if code := p.Terminate(time.Minute); code != 0 {
			t.Errorf("%s drained with exit code %d", p.Name, code)
		}
	}
	if v := j.Judge(false); len(v.Faults) > 0 {
		t.Errorf("%s", &v)
	}
	return took
}

func write(t *testing.T, report string) {
	t.Helper()
	if *table == "" {
		_, _ = fmt.Print(report)
		return
	}
	if err := os.WriteFile(*table, []byte(report), 0o644); err != nil { //nolint:gosec // a report
		t.Fatal(err)
	}
}

func worker(j *stand.Job, n int) *stand.Process {
	return j.Worker("worker "+strconv.Itoa(n), nil, "--session-timeout", session.String())
}

// halved says nil when two processes have partitions.
func halved(ctx context.Context, j *stand.Job) error {
	owners, err := j.Owners(ctx)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, name := range owners {
		names[name] = true
	}
	if len(names) != 2 || names[""] {
		return errors.New("not yet")
	}
	return nil
}

// acquired is the line with which a worker says that it acquired a partition.
type acquired struct {
	Time      time.Time `json:"time"`
	Partition int32     `json:"partition"`
	Epoch     int64     `json:"epoch"`
	Took      string    `json:"took"`
}

// takeover kills the owner and gives the time from the group's assignment until the last of its partitions has put out something.
func takeover(t *testing.T, j *stand.Job, watch *stand.Watch, owner, standby *stand.Process) time.Duration {
	t.Helper()
	before := len(standby.Lines(`"msg":"acquired"`))
	killed := time.Now()
	owner.Kill()
	var lines []acquired
	stand.Eventually(t, time.Minute, "the other has every partition", func(ctx context.Context) error {
		owners, err := j.Owners(ctx)
		if err != nil {
			return err
		}
		for p, name := range owners {
			if name == "" || name != owners[0] {
				return fmt.Errorf("partition %d is not taken yet", p)
			}
		}
		if lines = parse(t, standby.Lines(`"msg":"acquired"`)[before:]); len(lines) == 0 {
			return errors.New("nothing was acquired")
		}
		return nil
	})
	slowest := time.Duration(0)
	for _, l := range lines {
		took, err := time.ParseDuration(l.Took)
		if err != nil {
			t.Fatal(err)
		}
		assigned := l.Time.Add(-took)
		stand.Eventually(t, time.Minute, "an output of the new epoch", func(context.Context) error {
			first, ok := watch.First(l.Partition, l.Epoch)
			if !ok {
				return fmt.Errorf("none of partition %d, epoch %d", l.Partition, l.Epoch)
			}
			slowest = max(slowest, first.Sub(assigned))
			return nil
		})
		t.Logf("partition %d: assigned %s after the kill, acquired in %s", l.Partition, assigned.Sub(killed).Round(time.Millisecond), took)
	}
	t.Logf("%d partitions: first outputs within %s of their assignment", len(lines), slowest.Round(time.Millisecond))
	return slowest.Round(time.Millisecond)
}

func parse(t *testing.T, lines []string) []acquired {
	t.Helper()
	parsed := make([]acquired, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal([]byte(line), &parsed[i]); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return parsed
}
