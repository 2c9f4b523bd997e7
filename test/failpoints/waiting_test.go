//go:build failpoint

package failpoints_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"milepost/test/stand"
)

// P21: while a solver takes its time no transaction is open: solving, and everything else before a publication, is done when one begins.
func TestNoTransactionWaitsForASolver(t *testing.T) {
	t.Parallel()
	const solving = 5 * time.Second
	j := shared.Stand.NewJob(t, shared.Program, 2)
	// The first transaction stays open for a while, so that it can be seen.
	w := j.Worker("worker", []string{"FAILPOINT=offsets-added=hang"}, "--session-timeout", session.String(), "--counter-solve-time", solving.String())
	w.WaitLine(time.Minute, "recovered")
	w.Signal(syscall.SIGUSR1)
	// Before the records: what is looked at afterwards can only be too late.
	began := time.Now()
	load := &stand.Load{Keys: 10_000, Rate: 20}
	stop := load.Start(t.Context(), j)
	looked, open := 0, 0
	for time.Since(began) < solving-500*time.Millisecond {
		n, err := ongoing(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if time.Since(began) < solving-500*time.Millisecond {
			looked, open = looked+1, open+n
		}
	}
	if looked == 0 || open > 0 {
		t.Errorf("looked %d times while nothing was solved yet, and found %d open transactions", looked, open)
	}
	// And it is the right ones that were looked for.
	stand.Eventually(t, time.Minute, "a transaction is seen when there is something to publish", func(ctx context.Context) error {
		n, err := ongoing(ctx, j)
		if err == nil && n == 0 {
			err = errors.New("none is open")
		}
		return err
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
	j.Drained(time.Minute)
	if code := w.Terminate(time.Minute); code != 0 {
		t.Errorf("drained with exit code %d", code)
	}
	if v := j.Judge(false); len(v.Faults) > 0 {
		t.Errorf("%s", &v)
	}
}

// ongoing counts the job's transactions that are open.
func ongoing(ctx context.Context, j *stand.Job) (int, error) {
	listed, err := j.Admin.ListTransactions(ctx, nil, []string{"Ongoing"})
	if err != nil {
		return 0, fmt.Errorf("list transactions: %w", err)
	}
	n := 0
	for _, x := range listed.Sorted() {
		if strings.HasPrefix(x.TxnID, j.Group+".") {
			n++
		}
	}
	return n, nil
}
