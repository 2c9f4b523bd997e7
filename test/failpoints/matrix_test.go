//go:build failpoint

package failpoints_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"milepost/test/stand"
)

var (
	table = flag.String("table", "", "file for the table of results; empty: standard output")
	other = flag.Bool("other-protocol", false, "run each cell under the group protocol that it does not have otherwise")
)

// The axes of the matrix. The points' names are the program's.
func points() []string {
	return []string{
		"acquired", "prepared", "produced", "offsets-added", "end-sent", "end-answered", "promoted", "frontier-written", "hint-committed",
	}
}

func faults() []string { return []string{"error", "hang", "exit"} }

func nextOwners() []string { return []string{"same", "new"} }

// A12, A15, A19, P1, P20, P38, P40, H1, H11: the program fails at each arrow of the commit protocol: its answer is lost, late, or the last thing
// that it does; then the same process goes on (after an exit: a new one, alone), or another takes over. "Hang" with a new owner is the whole process
// standing still for longer than its session and then going on, a zombie that holds whatever it had in hand. Afterwards a stranger finds every
// record once, in order, and nothing left behind.
func TestMatrix(t *testing.T) {
	var results board
	t.Run("cells", func(t *testing.T) {
		n := 0
		for _, point := range points() {
			for _, fault := range faults() {
				for _, next := range nextOwners() {
					c := cell{point: point, fault: fault, next: next, protocol: "classic"}
					// Both protocols along each axis.
					if (n+n/2+n/6)%2 == 1 != *other {
						c.protocol = "consumer"
					}
					n++
					t.Run(strings.Join([]string{point, fault, next}, "/"), func(t *testing.T) {
						t.Parallel()
						c.run(t, &results)
					})
				}
			}
		}
	})
	results.print(t)
}

// cell is one place of the matrix.
type cell struct{ point, fault, next, protocol string }

// run makes one process fail while records flow, and judges.
func (c cell) run(t *testing.T, results *board) {
	t.Helper()
	const patience = 90 * time.Second // the machine may be busy with other cells
	began := time.Now()
	j := shared.Stand.NewJob(t, shared.Program, 2)
	load := &stand.Load{Keys: 24, Rate: 200, Busy: 800 * time.Millisecond, Quiet: 2200 * time.Millisecond}
	if c.point == "promoted" {
		// A key whose next observation comes soon is promoted by its next prepare: here many keys are seldom seen.
		load.Keys = 2000
	}
	stop := load.Start(t.Context(), j)
	workers := c.start(t, j)
	first := workers[0]
	if c.point != "acquired" {
		first.Signal(syscall.SIGUSR1)
	}
	first.WaitLine(patience, "failpoint "+c.point)
	hit := time.Now()
	pending, err := j.Ends(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	alive := c.follow(t, j, workers)
	stand.Eventually(t, patience, "what was pending at the fault is done, and the group's offsets do not lead", func(ctx context.Context) error {
		if err := j.HintLeads(ctx); err != nil {
			t.Error(err)
		}
		return j.Reached(ctx, pending)
	})
	recovered := time.Since(hit)
	if err := stop(); err != nil {
		t.Error(err)
	}
	j.Drained(patience)
	for _, p := range alive {
		if code := p.Terminate(time.Minute); code != 0 {
			t.Errorf("%s drained with exit code %d", p.Name, code)
		}
	}
	verdict := j.Judge(false)
	if len(verdict.Faults) > 0 || verdict.Raw != int(load.Sent()) {
		t.Errorf("%d written, %s", load.Sent(), &verdict)
	}
	results.add(c, recovered, verdict.Raw, len(verdict.Faults) == 0 && !t.Failed())
	t.Logf("%s: %d records, recovered in %s, %s in all", c.protocol, verdict.Raw, recovered.Round(100*time.Millisecond), time.Since(began).Round(time.Second))
}

func (c cell) worker(j *stand.Job, name string, env ...string) *stand.Process {
	return j.Worker(name, env, "--session-timeout", session.String(), "--protocol", c.protocol, "--lanes", "2")
}

// start starts the process that will fail and, with a new owner, one that shares the partitions with it. At the point "acquired" the first
// has both and fails at once; the other comes afterwards.
func (c cell) start(t *testing.T, j *stand.Job) []*stand.Process {
	t.Helper()
	fault := c.fault
	if fault == "hang" && c.next == "new" {
		fault = "stop"
	}
	workers := []*stand.Process{c.worker(j, "first", "FAILPOINT="+c.point+"="+fault)}
	if c.point == "acquired" {
		return workers
	}
	workers[0].WaitLine(time.Minute, "recovered")
	if c.next == "new" {
		workers = append(workers, c.worker(j, "second"))
		workers[1].WaitLine(time.Minute, "recovered")
	}
	return workers
}

// follow does what comes after the fault and gives the processes that are there afterwards.
func (c cell) follow(t *testing.T, j *stand.Job, workers []*stand.Process) []*stand.Process {
	t.Helper()
	if c.next == "same" && c.fault != "exit" {
		return workers
	}
	first := workers[0]
	var former map[int32]string // whoever has a partition now must not have it afterwards
	if c.point == "acquired" || c.next == "same" {
		var err error
		if former, err = j.Owners(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	switch c.fault {
	case "exit":
		if code := first.Wait(time.Minute); code != -1 {
			t.Errorf("%s ended with exit code %d, want a kill", first.Name, code)
		}
		workers = workers[1:]
	case "error":
		if code := first.Terminate(time.Minute); code != 0 {
			t.Errorf("%s drained with exit code %d", first.Name, code)
		}
		workers = workers[1:]
	}
	if c.point == "acquired" || c.next == "same" {
		workers = append(workers, c.worker(j, "second"))
	}
	stand.Eventually(t, 90*time.Second, "the other process has recovered every partition", func(ctx context.Context) error {
		return taken(ctx, j, former)
	})
	if c.fault == "hang" {
		first.Signal(syscall.SIGCONT)
	}
	return workers
}

// taken says nil when one process, none of the former ones, has every partition and has recovered it.
func taken(ctx context.Context, j *stand.Job, former map[int32]string) error {
	owners, err := j.Owners(ctx)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for p, name := range owners {
		if former[p] == name {
			return fmt.Errorf("partition %d is still %s's", p, name)
		}
		names[name] = true
	}
	if len(names) != 1 || len(owners) != int(j.Partitions) {
		return errors.New("the partitions are shared")
	}
	return nil
}

// board is the table of results.
type board struct {
	mu    sync.Mutex
	cells map[cell]string
	n     int
	raw   int
}

func (b *board) add(c cell, recovered time.Duration, raw int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cells == nil {
		b.cells = map[cell]string{}
	}
	word := fmt.Sprintf("%.1f s", recovered.Seconds())
	if !ok {
		word = "FAILED"
	}
	b.cells[cell{point: c.point, fault: c.fault, next: c.next}] = word
	b.n++
	b.raw += raw
}

// print writes the matrix: in each cell the time from the fault until what was pending then was done.
func (b *board) print(t *testing.T) {
	t.Helper()
	out := os.Stdout
	if *table != "" {
		var err error
		if out, err = os.Create(*table); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = out.Close() }()
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprint(w, "\nfrom the fault until what was pending is done\t")
	for _, fault := range faults() {
		for _, next := range nextOwners() {
			_, _ = fmt.Fprintf(w, "%s, %s\t", fault, next)
		}
	}
	_, _ = fmt.Fprintln(w)
	for _, point := range points() {
		_, _ = fmt.Fprintf(w, "%s\t", point)
		for _, fault := range faults() {
			for _, next := range nextOwners() {
				word := b.cells[cell{point: point, fault: fault, next: next}]
				if word == "" {
					word = "-"
				}
				_, _ = fmt.Fprintf(w, "%s\t", word)
			}
		}
		_, _ = fmt.Fprintln(w)
	}
	_, _ = fmt.Fprintf(w, "%d cells, %d records judged: each out once and in order, nothing left prepared\n", b.n, b.raw)
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
}
