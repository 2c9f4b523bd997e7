package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"milepost/internal/pgstore"
	"milepost/internal/stream"
)

// partitionFacts is one partition as "partition list --json" and "partition show --json" print it.
type partitionFacts struct {
	partitionStatus
	Instance        string     `json:"instance"` // of the last owner
	MemberID        string     `json:"member_id"`
	Released        bool       `json:"released"`
	Formers         int        `json:"unreleased_formers"`
	AcquiredAt      *time.Time `json:"acquired_at"`
	SeenAt          *time.Time `json:"seen_at"`
	TopicGeneration int32      `json:"topic_generation"`
	LeaderEpoch     int32      `json:"leader_epoch"`
	LedgerFloor     int64      `json:"ledger_floor"`
	Aside           int        `json:"quarantined_observations"`
}

func newPartition(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "partition",
		Short:   "List and show partitions, move a frontier, open the next topic generation",
		Example: "  orchestrator partition list --config milepost.toml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPartitionList(s), newPartitionShow(s), newPartitionSeek(s), newPartitionReset(s), newPartitionLedger(s))
	return cmd
}

func newPartitionList(s streams) *cobra.Command {
	var o operatorOptions
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the partitions with their owners and frontiers",
		Example: `  orchestrator partition list --dsn postgres://milepost@db/milepost --group fleet --raw positions --json`,
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			rows, err := readPartitions(cmd.Context(), s, &o)
			if err != nil {
				return err
			}
			if o.asJSON {
				return printJSON(s, rows)
			}
			if len(rows) == 0 {
				_, err := fmt.Fprintln(s.out, neverRan(o.group, o.raw))
				return err
			}
			w := newTable(s.out)
			w.row("PARTITION\tOWNER\tEPOCH\tRELEASED\tTOPIC GENERATION\tFRONTIER\tLEDGER FLOOR\tPREPARED\tQUARANTINED\tLAST SEEN")
			for _, p := range rows {
				w.row("%d\t%s\t%d\t%t\t%d\t%s\t%d\t%d\t%d\t%s", p.Partition, cmp.Or(p.Owner, "-"), p.Epoch, p.Released, p.TopicGeneration,
					orDash(p.Frontier), p.LedgerFloor, p.Prepared, p.Quarantined, timeText(p.SeenAt))
			}
			return w.flush()
		},
	}
	o.flags(cmd.Flags(), "brokers")
	return cmd
}

func newPartitionShow(s streams) *cobra.Command {
	var (
		o      operatorOptions
		number int32
	)
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "Show all that is known of one partition",
		Example: `  orchestrator partition show --config milepost.toml --partition 3`,
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			if number < 0 {
				return usagef("--partition must be set")
			}
			rows, err := readPartitions(cmd.Context(), s, &o)
			if err != nil {
				return err
			}
			for _, p := range rows {
				if p.Partition == number {
					return printPartition(s, o.asJSON, p)
				}
			}
			return fmt.Errorf("partition %d of topic %s was never owned by group %s", number, o.raw, o.group)
		},
	}
	o.flags(cmd.Flags(), "brokers")
	cmd.Flags().Int32Var(&number, "partition", -1, "the partition's number")
	return cmd
}

func printPartition(s streams, asJSON bool, p partitionFacts) error {
	if asJSON {
		return printJSON(s, p)
	}
	w := newTable(s.out)
	for _, x := range []struct {
		name  string
		value any
	}{
		{"partition", p.Partition},
		{"owner", p.Owner},
		{"last owner", p.Instance},
		{"member id", p.MemberID},
		{"ownership epoch", p.Epoch},
		{"group generation", p.Generation},
		{"released", p.Released},
		{"former owners to recover from", p.Formers},
		{"acquired at", timeText(p.AcquiredAt)},
		{"last seen", timeText(p.SeenAt)},
		{"topic generation", p.TopicGeneration},
		{"frontier", orDash(p.Frontier)},
		{"end of the log", orDash(p.EndOffset)},
		{"lag", orDash(p.Lag)},
		{"leader epoch", p.LeaderEpoch},
		{"ledger floor", p.LedgerFloor},
		{"commits that stand prepared", p.Prepared},
		{"oldest in hand", time.Duration(p.OldestPendingMS) * time.Millisecond},
		{"keys waiting", p.Waiting},
		{"keys blocked", p.Blocked},
		{"keys in quarantine", p.Quarantined},
		{"observations in quarantine", p.Aside},
	} {
		w.row("%s\t%v", x.name, x.value)
	}
	return w.flush()
}

// readPartitions reads what the database and, where they are named, the brokers know.
func readPartitions(ctx context.Context, s streams, o *operatorOptions) ([]partitionFacts, error) {
	store, err := o.store(ctx)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	rows, err := store.Status(ctx, o.group, o.raw)
	if err != nil {
		return nil, err
	}
	var ends map[int32]int64
	if o.asked {
		if ends, err = o.ends(ctx, s); err != nil {
			return nil, err
		}
	}
	all := make([]partitionFacts, 0, len(rows))
	for _, r := range rows {
		all = append(all, factsOf(r, ends))
	}
	return all, nil
}

func factsOf(r pgstore.PartitionStatus, ends map[int32]int64) partitionFacts {
	p := partitionFacts{
		partitionStatus: statusOf(r, ends), Instance: r.Instance, MemberID: r.MemberID, Released: r.Released, Formers: r.Formers,
		TopicGeneration: r.Frontier.Next.Generation, LeaderEpoch: r.Frontier.LeaderEpoch, LedgerFloor: r.LedgerFloor, Aside: r.Aside,
	}
	if !r.AcquiredAt.IsZero() {
		at := r.AcquiredAt.UTC()
		p.AcquiredAt = &at
	}
	if !r.SeenAt.IsZero() {
		at := r.SeenAt.UTC()
		p.SeenAt = &at
	}
	return p
}

func timeText(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Format(time.RFC3339)
}

func newPartitionSeek(s streams) *cobra.Command {
	var (
		o      operatorOptions
		wait   requestOptions
		number int32
		offset int64
	)
	cmd := &cobra.Command{
		Use:   "seek",
		Short: "Move a partition's frontier forward, past observations that are given up",
		Long: `Move a partition's frontier forward to an offset: what lies between is skipped for good. It goes forward only, for what is below
the frontier is done and its rows cover it; to replay, open a new topic generation. The partition's owner does it, after a drain: a
worker must be running.`,
		Example: `  orchestrator partition seek --config milepost.toml --partition 3 --offset 120000`,
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			if number < 0 || offset < 0 {
				return usagef("--partition and --offset must be set")
			}
			return seek(cmd.Context(), s, &o, wait, stream.Partition{Topic: o.raw, Number: number}, offset)
		},
	}
	fs := cmd.Flags()
	o.flags(fs)
	wait.flags(fs)
	fs.Int32Var(&number, "partition", -1, "the partition's number")
	fs.Int64Var(&offset, "offset", -1, "the next offset to do")
	return cmd
}

// seek asks the partition's owner, unless what the database knows says already that it would refuse.
func seek(ctx context.Context, s streams, o *operatorOptions, wait requestOptions, p stream.Partition, offset int64) error {
	store, err := o.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	rows, err := store.Status(ctx, o.group, o.raw)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Partition != p {
			continue
		}
		if at := r.Frontier.Next.Offset; !r.Frontier.Next.IsZero() && offset <= at {
			return fmt.Errorf("the frontier is at %d and goes forward only: what is below it is done, and its rows cover it; "+
				"to replay, open a new topic generation: orchestrator partition reset", at)
		}
		ids, err := store.AskSeek(ctx, o.group, p, offset)
		if err != nil {
			return err
		}
		return await(ctx, s, o, wait, store, ids)
	}
	return errors.New("partition " + p.String() + " was never owned by group " + o.group)
}
