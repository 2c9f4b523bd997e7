package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"milepost/internal/commit"
	"milepost/internal/pgstore"
	"milepost/internal/stream"
)

// quarantinedKey is one key as "quarantine list --json" prints it.
type quarantinedKey struct {
	Partition    int32     `json:"partition"`
	Key          string    `json:"key"`
	Observations int       `json:"observations"`
	First        string    `json:"first"` // revisions
	Last         string    `json:"last"`
	Class        string    `json:"class"`
	Reason       string    `json:"reason"`
	Since        time.Time `json:"since"`
}

// quarantinedObservation is one observation as "quarantine show --json" prints it.
type quarantinedObservation struct {
	Partition   int32             `json:"partition"`
	Key         string            `json:"key"`
	Revision    string            `json:"revision"`
	Class       string            `json:"class"`
	Reason      string            `json:"reason"`
	Published   bool              `json:"published"`
	Epoch       int64             `json:"epoch"`
	At          time.Time         `json:"at"`
	Timestamp   time.Time         `json:"timestamp"` // the record's
	Headers     map[string]string `json:"headers,omitempty"`
	Value       *string           `json:"value"`
	ValueBase64 []byte            `json:"value_base64,omitempty"`
	// Evidence is the prepared commit that could not be published.
	Evidence []evidence `json:"evidence,omitempty"`
}

type evidence struct {
	Topic       string  `json:"topic"`
	Value       *string `json:"value"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

func newQuarantine(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quarantine",
		Short: "List, show, release and discard keys that cannot go on by themselves",
		Long: `A key whose observation no retry can help stops by itself; that observation and those that follow are kept, durably, until an
operator releases or discards them. The other keys of its partition go on.`,
		Example: "  orchestrator quarantine list --config milepost.toml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newQuarantineList(s), newQuarantineShow(s),
		newQuarantineAsk(s, commit.RequestRelease, "Replay a key's quarantined observations in order", `Replay quarantined observations in their order through the same path as any other, once what stopped the key is mended. An
observation leaves the quarantine when its commit is current; one that fails again stops its key there, and the rest stays. The
partition's owner does it: a worker must be running.`),
		newQuarantineAsk(s, commit.RequestDiscard, "Give a key's quarantined observations up for good", `Give quarantined observations up for good: nothing of them is ever published, and the key goes on with what comes next. The
partition's owner does it: a worker must be running.`))
	return cmd
}

// listLimit bounds what the lists print.
const listLimit = 100_000

func newQuarantineList(s streams) *cobra.Command {
	var o operatorOptions
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the keys in quarantine, the longest there first",
		Example: `  orchestrator quarantine list --dsn postgres://milepost@db/milepost --group fleet --raw positions --json`,
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			store, err := o.store(cmd.Context())
			if err != nil {
				return err
			}
			defer store.Close()
			keys, err := store.QuarantineKeys(cmd.Context(), o.group, o.raw, listLimit)
			if err != nil {
				return err
			}
			return printQuarantine(s, o.asJSON, keys)
		},
	}
	o.flags(cmd.Flags())
	return cmd
}

func printQuarantine(s streams, asJSON bool, keys []pgstore.QuarantineKey) error {
	if asJSON {
		list := make([]quarantinedKey, 0, len(keys))
		for _, k := range keys {
			list = append(list, quarantinedKey{
				Partition: k.Partition.Number, Key: string(k.Key), Observations: k.Rows, First: k.First.String(), Last: k.Last.String(),
				Class: k.Class, Reason: k.Reason, Since: k.Since.UTC(),
			})
		}
		return printJSON(s, list)
	}
	if len(keys) == 0 {
		_, err := fmt.Fprintln(s.out, "no key is in quarantine")
		return err
	}
	w := newTable(s.out)
	w.row("PARTITION\tKEY\tOBSERVATIONS\tFIRST\tSINCE\tCLASS\tREASON")
	for _, k := range keys {
		w.row("%d\t%s\t%d\t%s\t%s\t%s\t%s", k.Partition.Number, keyText(k.Key), k.Rows, k.First, k.Since.UTC().Format(time.RFC3339), k.Class, k.Reason)
	}
	return w.flush()
}

func newQuarantineShow(s streams) *cobra.Command {
	var (
		o   operatorOptions
		key string
	)
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "Show a key's quarantined observations, payload and evidence included",
		Long:    `Show a key's quarantined observations in their order, with their payload, and the prepared commit that could not be published.`,
		Example: `  orchestrator quarantine show --config milepost.toml --key truck-17`,
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			if key == "" {
				return usagef("--key must be set")
			}
			store, err := o.store(cmd.Context())
			if err != nil {
				return err
			}
			defer store.Close()
			entries, err := store.QuarantineEntries(cmd.Context(), o.group, o.raw, stream.Key(key), listLimit)
			if err != nil {
				return err
			}
			return printObservations(s, o.asJSON, stream.Key(key), entries)
		},
	}
	o.flags(cmd.Flags())
	cmd.Flags().StringVar(&key, "key", "", "the key")
	return cmd
}

func printObservations(s streams, asJSON bool, key stream.Key, entries []pgstore.QuarantineEntry) error {
	list := make([]quarantinedObservation, 0, len(entries))
	for _, e := range entries {
		list = append(list, observationOf(e))
	}
	if asJSON {
		return printJSON(s, list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(s.out, "nothing of key %s is in quarantine\n", keyText(key))
		return err
	}
	w := newTable(s.out)
	for _, q := range list {
		value := "null"
		if q.Value != nil || q.ValueBase64 != nil {
			value = orText(q.Value, q.ValueBase64)
		}
		w.row("partition %d  revision %s  at %s  epoch %d", q.Partition, q.Revision, q.At.Format(time.RFC3339), q.Epoch)
		w.row("  %s: %s", q.Class, q.Reason)
		w.row("  %s", value)
		for _, x := range q.Evidence {
			w.row("  prepared for %s and never published: %s", x.Topic, orText(x.Value, x.ValueBase64))
		}
	}
	return w.flush()
}

func orText(text *string, raw []byte) string {
	if text != nil {
		return *text
	}
	return fmt.Sprintf("%x", raw)
}

func observationOf(e pgstore.QuarantineEntry) quarantinedObservation {
	q := quarantinedObservation{
		Partition: e.Partition.Number, Key: string(e.Key), Revision: e.Revision.String(), Class: e.Class, Reason: e.Reason,
		Published: e.Published, Epoch: int64(e.Epoch), At: e.At.UTC(), Timestamp: e.Record.Timestamp,
	}
	if e.Record.Value != nil {
		q.Value, q.ValueBase64 = binary(e.Record.Value)
	}
	for _, h := range e.Record.Headers {
		if q.Headers == nil {
			q.Headers = map[string]string{}
		}
		q.Headers[h.Key] = string(h.Value)
	}
	for _, o := range e.Outputs {
		x := evidence{Topic: o.Topic}
		x.Value, x.ValueBase64 = binary(o.Value)
		q.Evidence = append(q.Evidence, x)
	}
	return q
}

func newQuarantineAsk(s streams, kind commit.RequestKind, short, long string) *cobra.Command {
	var (
		o    operatorOptions
		wait requestOptions
		key  string
		all  bool
		yes  bool
	)
	cmd := &cobra.Command{
		Use:   string(kind),
		Short: short,
		Long:  long,
		Example: fmt.Sprintf(`  orchestrator quarantine %[1]s --config milepost.toml --key truck-17
  orchestrator quarantine %[1]s --config milepost.toml --all --yes --json`, kind),
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			if (key == "") != all {
				return usagef("either --key K or --all must be given")
			}
			if all || kind == commit.RequestDiscard {
				if !yes {
					return usagef("%s would %s; add --yes", what(kind, all), consequence(kind))
				}
			}
			return askKeys(cmd.Context(), s, &o, wait, kind, stream.Key(key))
		},
	}
	fs := cmd.Flags()
	o.flags(fs)
	wait.flags(fs)
	fs.StringVar(&key, "key", "", "the key")
	fs.BoolVar(&all, "all", false, "every key in quarantine")
	fs.BoolVar(&yes, "yes", false, "do it; asked for with --all and by discard")
	return cmd
}

func what(kind commit.RequestKind, all bool) string {
	if all {
		return "quarantine " + string(kind) + " --all"
	}
	return "quarantine " + string(kind)
}

func consequence(kind commit.RequestKind) string {
	if kind == commit.RequestDiscard {
		return "give the quarantined observations up for good"
	}
	return "replay every quarantined observation of every key"
}

func askKeys(ctx context.Context, s streams, o *operatorOptions, wait requestOptions, kind commit.RequestKind, key stream.Key) error {
	store, err := o.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	ids, err := store.AskKeys(ctx, o.group, o.raw, kind, key, listLimit)
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		return await(ctx, s, o, wait, store, ids)
	}
	if key != "" {
		return errors.New("nothing of key " + strconv.Quote(string(key)) + " is in quarantine")
	}
	if o.asJSON {
		return printJSON(s, requestFacts{Requests: []requestResult{}})
	}
	_, err = fmt.Fprintln(s.out, "no key is in quarantine")
	return err
}
