package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"milepost/internal/pgstore"
)

// requestFacts is what a command that asks partitions' owners prints with --json.
type requestFacts struct {
	Done      int             `json:"done"`
	Failed    int             `json:"failed"`
	Withdrawn int             `json:"withdrawn"`
	Requests  []requestResult `json:"requests"`
}

type requestResult struct {
	ID        int64  `json:"id"`
	Partition int32  `json:"partition"`
	Key       string `json:"key,omitempty"`
	State     string `json:"state"`
	Outcome   string `json:"outcome"`
	Epoch     int64  `json:"epoch,omitempty"`
}

// requestOptions say how long to wait.
type requestOptions struct{ wait time.Duration }

func (o *requestOptions) flags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.wait, "wait", time.Minute, "how long to wait for the partitions' owners; what nobody has executed by then is taken back")
}

// requestPoll is how often a command looks where its requests stand.
const requestPoll = 200 * time.Millisecond

// await waits until every request is answered, or the bound, and prints what came of them. Anything but done is a failure.
func await(ctx context.Context, s streams, o *operatorOptions, r requestOptions, store *pgstore.Store, ids []int64) error {
	ctx, cancel := context.WithTimeout(ctx, r.wait)
	defer cancel()
	poll := time.NewTicker(requestPoll)
	defer poll.Stop()
	var states []pgstore.RequestState
	for told := time.Now(); ; {
		var err error
		states, err = store.RequestStates(ctx, o.group, o.raw, ids)
		if err != nil && ctx.Err() == nil {
			return err
		}
		waiting := 0
		for _, x := range states {
			if x.State == "waiting" {
				waiting++
			}
		}
		if err == nil && waiting == 0 {
			break
		}
		if ctx.Err() != nil {
			return withdraw(context.WithoutCancel(ctx), s, o, r, store, ids)
		}
		if time.Since(told) >= time.Second {
			told = time.Now()
			if _, err := fmt.Fprintf(s.err, "waiting for the partitions' owners: %d of %d requests are answered\n", len(ids)-waiting, len(ids)); err != nil {
				return err
			}
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
		}
	}
	return report(s, o, states, nil)
}

// withdraw takes back what nobody has executed and says who should have.
func withdraw(ctx context.Context, s streams, o *operatorOptions, r requestOptions, store *pgstore.Store, ids []int64) error {
	if _, err := store.Withdraw(ctx, o.group, o.raw, ids); err != nil {
		return err
	}
	states, err := store.RequestStates(ctx, o.group, o.raw, ids)
	if err != nil {
		return err
	}
	owners, err := store.Status(ctx, o.group, o.raw)
	if err != nil {
		return err
	}
	late := map[int32]bool{}
	for _, x := range states {
		if x.State == "withdrawn" {
			late[x.Partition.Number] = true
		}
	}
	var of []string
	for _, p := range owners {
		if !late[p.Partition.Number] {
			continue
		}
		who := "has no owner"
		if owner := ownerOf(p); owner != "" {
			who = fmt.Sprintf("is owned by %s, last seen at %s", owner, p.SeenAt.UTC().Format(time.RFC3339))
		}
		of = append(of, fmt.Sprintf("partition %d %s", p.Partition.Number, who))
	}
	return report(s, o, states, fmt.Errorf("no owner executed it within %s, so it was taken back (%s): a worker of the group must be running "+
		"(orchestrator run); see orchestrator status", r.wait, strings.Join(of, "; ")))
}

// report prints the requests' outcomes and gives the error that the command ends with.
func report(s streams, o *operatorOptions, states []pgstore.RequestState, late error) error {
	f := requestFacts{Requests: make([]requestResult, 0, len(states))}
	for _, x := range states {
		switch x.State {
		case "done":
			f.Done++
		case "failed":
			f.Failed++
		default:
			f.Withdrawn++
		}
		f.Requests = append(f.Requests, requestResult{
			ID: x.ID, Partition: x.Partition.Number, Key: string(x.Key), State: x.State, Outcome: x.Outcome, Epoch: int64(x.Epoch),
		})
	}
	if err := printRequests(s, o.asJSON, f, states); err != nil {
		return err
	}
	switch {
	case late != nil && f.Withdrawn > 0:
		return late
	case f.Failed > 0:
		return &exitError{exitFailed, fmt.Errorf("%d of %d requests failed", f.Failed, len(states))}
	case len(states) == 0:
		return errors.New("the requests are gone")
	}
	return nil
}

func printRequests(s streams, asJSON bool, f requestFacts, states []pgstore.RequestState) error {
	if asJSON {
		return printJSON(s, f)
	}
	w := newTable(s.out)
	for _, x := range states {
		key := ""
		if x.Key != "" {
			key = keyText(x.Key)
		}
		w.row("partition %d\t%s\t%s\t%s", x.Partition.Number, key, x.State, x.Outcome)
	}
	return w.flush()
}
