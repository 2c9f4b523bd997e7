package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/fleet"
	"milepost/internal/pgstore"
	"milepost/internal/publish"
)

// resetOptions are the settings of partition reset.
type resetOptions struct {
	operatorOptions
	yes, earliest, unordered bool
	offsets                  map[string]int64
}

// resetFacts is what "partition reset --json" prints.
type resetFacts struct {
	TopicGeneration int32           `json:"topic_generation"`
	Starts          map[int32]int64 `json:"starts"` // of the partitions that do not go on at their frontiers
	Fenced          []string        `json:"fenced"` // owners that did not release; they acquire anew
}

func newPartitionReset(s streams) *cobra.Command {
	var o resetOptions
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Open the raw topic's next generation: it was made again, has grown, or is to be replayed",
		Long: `Open the next topic generation of a group's raw topic, in one transaction that takes every partition away from its owner; workers
that run acquire anew under it.

The topic was deleted and made again: the new one is read from its beginning. Partitions were added: every old partition must have
reached its end, with the producers stopped, and no commit may stand prepared and no observation be in quarantine, for keys have
moved; the ledger topic gets as many partitions. The producers may start when the command has returned. To replay, name where to begin: --earliest, or --offset for some partitions; every
key that has history then begins anew, with a reset of reason "operator", and its outputs carry the new generation.

It refuses, with every reason and nothing changed, what would lose or reorder observations.`,
		Example: `  orchestrator partition reset --config milepost.toml --yes
  orchestrator partition reset --config milepost.toml --yes --earliest
  orchestrator partition reset --config milepost.toml --yes --offset 0=1200,3=1150`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			switch {
			case o.earliest && len(o.offsets) > 0:
				return usagef("--earliest and --offset exclude each other")
			case !o.yes:
				return usagef("partition reset takes every partition away from its owner and begins a new topic generation; add --yes")
			}
			return o.onTopics(cmd.Context(), s, func(ctx context.Context, store *pgstore.Store, client *kgo.Client, now topicsNow) error {
				return runReset(ctx, s, &o, store, client, now)
			})
		},
	}
	fs := cmd.Flags()
	o.flags(fs, "brokers", "prefix")
	fs.BoolVar(&o.yes, "yes", false, "do it")
	fs.BoolVar(&o.earliest, "earliest", false, "replay: every partition from the beginning of its log")
	fs.StringToInt64Var(&o.offsets, "offset", nil, "replay: where partitions begin, `partition=offset,…`; the others go on at their frontiers")
	fs.BoolVar(&o.unordered, "unordered", false, "partitions were added: go on although old ones are not done; the order of a key that has moved is not kept across the change")
	return cmd
}

// topicsNow is what the brokers say of the raw topic and its ledger.
type topicsNow struct {
	raw, ledger              kadm.TopicDetail
	starts, ends, ledgerFrom map[int32]int64
}

func readTopics(ctx context.Context, client *kgo.Client, raw, ledger string) (topicsNow, error) {
	admin := kadm.NewClient(client)
	now := topicsNow{}
	details, err := admin.ListTopics(ctx, raw, ledger)
	if err != nil {
		return now, fmt.Errorf("describe topics %s and %s: %w", raw, ledger, err)
	}
	now.raw, now.ledger = details[raw], details[ledger]
	for _, d := range []kadm.TopicDetail{now.raw, now.ledger} {
		if d.Err != nil {
			return now, fmt.Errorf("describe topic %s: %w", d.Topic, d.Err)
		}
	}
	for _, x := range []struct {
		list  func(context.Context, ...string) (kadm.ListedOffsets, error)
		topic string
		to    *map[int32]int64
	}{{admin.ListStartOffsets, raw, &now.starts}, {admin.ListEndOffsets, raw, &now.ends}, {admin.ListStartOffsets, ledger, &now.ledgerFrom}} {
		listed, err := x.list(ctx, x.topic)
		if err == nil {
			err = listed.Error()
		}
		if err != nil {
			return now, fmt.Errorf("list the offsets of %s: %w", x.topic, err)
		}
		*x.to = map[int32]int64{}
		listed.Each(func(l kadm.ListedOffset) { (*x.to)[l.Partition] = l.Offset })
	}
	return now, nil
}

// onTopics opens the database and the brokers for what is done in the light of what the topics are now.
func (o *operatorOptions) onTopics(ctx context.Context, s streams, do func(context.Context, *pgstore.Store, *kgo.Client, topicsNow) error) error {
	store, err := o.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	client, err := o.client(s)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 3*brokerWait)
	defer cancel()
	now, err := readTopics(ctx, client, o.raw, publish.Topics{Prefix: o.prefix}.Ledger())
	if err != nil {
		return err
	}
	return do(ctx, store, client, now)
}

func runReset(ctx context.Context, s streams, o *resetOptions, store *pgstore.Store, client *kgo.Client, now topicsNow) error {
	bound, found, err := store.Binding(ctx, o.group, o.raw)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("group %s never owned a partition of topic %s: there is nothing to follow", o.group, o.raw)
	}
	g, err := o.generation(now, bound)
	if err != nil {
		return err
	}
	if n := len(now.ledger.Partitions); n < len(now.raw.Partitions) {
		if err := growLedger(ctx, client, now); err != nil {
			return err
		}
	}
	opened, err := store.OpenGeneration(ctx, g)
	if err != nil {
		return err
	}
	// From here on nothing more can be published under the generation before: a fenced owner has to initialise its lanes, and reads its epochs after that.
	if err := publish.InitFormers(ctx, client, o.group, o.raw, opened.Formers); err != nil {
		return fmt.Errorf("topic generation %d is open, but what its former owners have in hand could not be stopped; "+
			"keep the producers stopped until every partition has an owner again (see: orchestrator status): %w", opened.TopicGeneration, err)
	}
	return printReset(s, o.asJSON, resetFacts{TopicGeneration: opened.TopicGeneration, Starts: g.Starts, Fenced: opened.Fenced})
}

// generation plans the next generation, from what is bound and what the brokers have now.
func (o *resetOptions) generation(now topicsNow, bound pgstore.Binding) (pgstore.Generation, error) {
	g := pgstore.Generation{
		Group: o.group, Topic: o.raw, TopicID: now.raw.ID, LedgerTopicID: now.ledger.ID, Partitions: int32(len(now.raw.Partitions)),
		Starts: map[int32]int64{}, Ends: now.ends, LedgerStarts: now.ledgerFrom, Unordered: o.unordered,
	}
	again, grown := bound.TopicID != g.TopicID, bound.Partitions != g.Partitions
	replay := o.earliest || len(o.offsets) > 0
	switch {
	case bound.LedgerTopicID != g.LedgerTopicID:
		return g, fmt.Errorf("topic %s is not the ledger that group %s is bound to: bind it first, with orchestrator partition ledger --accept --yes",
			now.ledger.Topic, o.group)
	case !again && !grown && !replay:
		return g, fmt.Errorf("topic %s is the one that group %s is bound to, with %d partitions: there is nothing to open; to replay, name --earliest or --offset",
			o.raw, o.group, g.Partitions)
	case again || o.earliest:
		maps.Copy(g.Starts, now.starts)
	case grown:
		for n := bound.Partitions; n < g.Partitions; n++ {
			g.Starts[n] = now.starts[n]
		}
	}
	if replay {
		g.Anew = fleet.ResetOperator
	}
	return g, o.named(&g, now)
}

// named takes the offsets of --offset.
func (o *resetOptions) named(g *pgstore.Generation, now topicsNow) error {
	var problems []error
	for _, text := range slices.Sorted(maps.Keys(o.offsets)) {
		n, err := strconv.ParseInt(text, 10, 32)
		at := o.offsets[text]
		switch from, known := now.starts[int32(n)]; {
		case err != nil || !known:
			problems = append(problems, fmt.Errorf("--offset %s=%d: topic %s has no partition %q", text, at, o.raw, text))
		case at < from || at > now.ends[int32(n)]:
			problems = append(problems, fmt.Errorf("--offset %s=%d: the log of partition %d reaches from %d to %d", text, at, n, from, now.ends[int32(n)]))
		default:
			g.Starts[int32(n)] = at
		}
	}
	return usage(errors.Join(problems...))
}

// growLedger gives the ledger as many partitions as the raw topic has.
func growLedger(ctx context.Context, client *kgo.Client, now topicsNow) error {
	resp, err := kadm.NewClient(client).UpdatePartitions(ctx, len(now.raw.Partitions), now.ledger.Topic)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		return fmt.Errorf("give ledger %s %d partitions: %w", now.ledger.Topic, len(now.raw.Partitions), err)
	}
	return nil
}

func printReset(s streams, asJSON bool, f resetFacts) error {
	if f.Fenced == nil {
		f.Fenced = []string{}
	}
	if asJSON {
		return printJSON(s, f)
	}
	w := newTable(s.out)
	w.row("topic generation %d is open", f.TopicGeneration)
	for _, n := range slices.Sorted(maps.Keys(f.Starts)) {
		w.row("  partition %d begins at %d", n, f.Starts[n])
	}
	if len(f.Fenced) > 0 {
		w.row("fenced: %s; they acquire anew", strings.Join(f.Fenced, ", "))
	}
	return w.flush()
}

// ledgerFacts is what "partition ledger --json" prints.
type ledgerFacts struct {
	Ledger   string `json:"ledger"`
	Prepared int    `json:"prepared"`
}

func newPartitionLedger(s streams) *cobra.Command {
	var (
		o           operatorOptions
		yes, accept bool
	)
	cmd := &cobra.Command{
		Use:   "ledger",
		Short: "Accept a ledger that was made again or has a gap",
		Long: `The ledger says which revisions were published. Where it was deleted and made again, or records are missing from it, nobody can
tell any more, and partitions refuse to start. This binds the group to the ledger as it is: reading begins where it starts, and each
commit that stands prepared is published by the next owner, perhaps a second time. Every partition is taken away from its owner.`,
		Example: `  orchestrator partition ledger --config milepost.toml --accept --yes`,
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			if !accept || !yes {
				return usagef("what stands prepared may be published twice: add --accept --yes")
			}
			return o.onTopics(cmd.Context(), s, func(ctx context.Context, store *pgstore.Store, _ *kgo.Client, now topicsNow) error {
				return runLedger(ctx, s, &o, store, now)
			})
		},
	}
	fs := cmd.Flags()
	o.flags(fs, "brokers", "prefix")
	fs.BoolVar(&accept, "accept", false, "bind the group to the ledger as it is")
	fs.BoolVar(&yes, "yes", false, "do it")
	return cmd
}

func runLedger(ctx context.Context, s streams, o *operatorOptions, store *pgstore.Store, now topicsNow) error {
	prepared, err := store.AcceptLedger(ctx, o.group, o.raw, now.ledger.ID, now.ledgerFrom)
	if err != nil {
		return err
	}
	if o.asJSON {
		return printJSON(s, ledgerFacts{Ledger: now.ledger.Topic, Prepared: prepared})
	}
	_, err = fmt.Fprintf(s.out, "group %s is bound to ledger %s as it is; %d commits stand prepared and will be published, perhaps once more\n",
		o.group, now.ledger.Topic, prepared)
	return err
}
