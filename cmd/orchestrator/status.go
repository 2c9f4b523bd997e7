package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"milepost/internal/pgstore"
)

// statusFacts is what "status --json" prints; scripts rely on the names.
type statusFacts struct {
	Group      string            `json:"group"`
	Raw        string            `json:"raw"`
	Partitions []partitionStatus `json:"partitions"`
}

// partitionStatus is one partition. What is not known is null: the end without brokers, the frontier before the first start.
type partitionStatus struct {
	Partition       int32  `json:"partition"`
	Owner           string `json:"owner"` // empty: nobody
	Epoch           int64  `json:"epoch"`
	Generation      int32  `json:"generation"`
	Frontier        *int64 `json:"frontier"`
	EndOffset       *int64 `json:"end_offset"`
	Lag             *int64 `json:"lag"`
	Prepared        int    `json:"prepared"`
	OldestPendingMS int64  `json:"oldest_pending_ms"`
	Waiting         int    `json:"waiting"`
	Blocked         int    `json:"blocked"`
	Quarantined     int    `json:"quarantined"`
}

func newStatus(s streams) *cobra.Command {
	var o operatorOptions
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show owner, frontier, lag and trouble of each partition",
		Long: `Show each partition of a group's raw topic: owner, ownership epoch, group generation, frontier, lag, commits that stand prepared,
age of the oldest observation in hand, and how many keys wait, are blocked, or are in quarantine. It reads the database, and the
brokers where they are named; it needs no live worker. Waiting, blocked and the age are the owner's words of its last heartbeat.

Every setting of run is taken, TLS and SASL for the brokers too.

The JSON object: group, raw, partitions: partition, owner (empty: nobody), epoch, generation, frontier, end_offset and lag (null
without --brokers), prepared, oldest_pending_ms, waiting, blocked, quarantined (keys).`,
		Example: `  orchestrator status --dsn postgres://milepost@db/milepost --group fleet --raw positions --brokers kafka:9092
  orchestrator status --config milepost.toml --json | jq '.partitions[] | select(.lag > 1000)'`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			return runStatus(cmd.Context(), s, &o)
		},
	}
	o.flags(cmd.Flags(), "brokers")
	return cmd
}

func runStatus(ctx context.Context, s streams, o *operatorOptions) error {
	store, err := o.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	rows, err := store.Status(ctx, o.group, o.raw)
	if err != nil {
		return err
	}
	facts := statusFacts{Group: o.group, Raw: o.raw, Partitions: make([]partitionStatus, 0, len(rows))}
	var ends map[int32]int64
	var away error
	if o.asked {
		ends, away = o.ends(ctx, s)
	}
	for _, r := range rows {
		facts.Partitions = append(facts.Partitions, statusOf(r, ends))
	}
	if o.asJSON {
		err = printJSON(s, facts)
	} else if len(rows) > 0 || away == nil {
		err = printStatus(s, facts)
	}
	if err != nil {
		return err
	}
	return away // what the database knows is shown all the same
}

// statusOf joins what the database and the brokers say.
func statusOf(r pgstore.PartitionStatus, ends map[int32]int64) partitionStatus {
	p := partitionStatus{
		Partition: r.Partition.Number, Owner: ownerOf(r), Epoch: int64(r.Epoch), Generation: r.Generation, Prepared: r.Prepared,
		OldestPendingMS: r.Live.OldestPending.Milliseconds(), Waiting: r.Live.Waiting, Blocked: r.Live.Blocked, Quarantined: r.Quarantined,
	}
	if !r.Frontier.Next.IsZero() {
		p.Frontier = &r.Frontier.Next.Offset
	}
	if end, ok := ends[r.Partition.Number]; ok {
		p.EndOffset = &end
		if p.Frontier != nil {
			lag := max(end-*p.Frontier, 0)
			p.Lag = &lag
		}
	}
	return p
}

// ownerOf names the instance that owns a partition; a released one is nobody's.
func ownerOf(r pgstore.PartitionStatus) string {
	if r.Released {
		return ""
	}
	return r.Instance
}

func printStatus(s streams, facts statusFacts) error {
	if len(facts.Partitions) == 0 {
		_, err := fmt.Fprintln(s.out, neverRan(facts.Group, facts.Raw))
		return err
	}
	w := newTable(s.out)
	w.row("PARTITION\tOWNER\tEPOCH\tGENERATION\tFRONTIER\tEND\tLAG\tPREPARED\tOLDEST\tWAITING\tBLOCKED\tQUARANTINED")
	for _, p := range facts.Partitions {
		oldest := time.Duration(p.OldestPendingMS) * time.Millisecond
		w.row("%d\t%s\t%d\t%d\t%s\t%s\t%s\t%d\t%s\t%d\t%d\t%d", p.Partition, cmp.Or(p.Owner, "-"), p.Epoch, p.Generation, orDash(p.Frontier),
			orDash(p.EndOffset), orDash(p.Lag), p.Prepared, oldest, p.Waiting, p.Blocked, p.Quarantined)
	}
	return w.flush()
}

// neverRan is what there is to say of a group without a row.
func neverRan(group, raw string) string {
	return fmt.Sprintf("no worker of group %s has ever run on topic %s, by this database (other names: --group, --raw)", group, raw)
}

func orDash(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}
