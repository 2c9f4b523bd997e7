package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"milepost/internal/doctor"
	"milepost/internal/pgstore"
	"milepost/internal/publish"
)

// doctorFacts is what "doctor --json" prints.
type doctorFacts struct {
	OK     int              `json:"ok"`
	Warn   int              `json:"warn"`
	Fail   int              `json:"fail"`
	Checks []doctor.Finding `json:"checks"`
}

// doctorWait bounds the examination of each system.
const doctorWait = 30 * time.Second

func newDoctor(s streams) *cobra.Command {
	var o operatorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine brokers, topics and database, with a remedy for each finding",
		Long: `Examine what a worker with these settings would stand on: brokers (version, transaction.version, rights, retention of offsets),
topics (existence, replication, the ledger's retention, in-sync replicas, record size), database (version, durability, standby,
connections, old snapshots, schema) and clocks. It changes nothing.

Each line is ok, warn or fail with its remedy. The JSON object: ok, warn, fail (counts), checks: area, name, state, found, remedy. Exit
code 1 when anything fails.`,
		Example: `  orchestrator doctor --config milepost.toml
  orchestrator doctor --brokers kafka:9092 --dsn postgres://milepost@db/milepost --json | jq '.checks[] | select(.state != "ok")'`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			findings, err := examine(cmd.Context(), s, &o)
			if err != nil {
				return err
			}
			return printDoctor(s, o.asJSON, findings)
		},
	}
	o.flags(cmd.Flags(), "brokers", "prefix")
	return cmd
}

func examine(ctx context.Context, s streams, o *operatorOptions) ([]doctor.Finding, error) {
	client, err := o.client(s)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	bounded, cancel := context.WithTimeout(ctx, doctorWait)
	defer cancel()
	findings := publish.Examine(bounded, client, o.group, publish.TopicsSpec{
		Topics: publish.Topics{Prefix: o.prefix}, Raw: o.raw, MaxRecordBytes: o.maxRecordBytes,
	})
	cfg := pgstore.DefaultConfig()
	cfg.DSN, cfg.Pooler, cfg.MaxConns = string(o.dsn), o.pooler, 2
	store, err := pgstore.Open(ctx, cfg)
	if err != nil {
		return nil, usage(err)
	}
	defer store.Close()
	bounded, cancel = context.WithTimeout(ctx, doctorWait)
	defer cancel()
	return append(findings, store.Examine(bounded)...), nil
}

func printDoctor(s streams, asJSON bool, findings []doctor.Finding) error {
	f := doctorFacts{
		OK: doctor.Count(findings, doctor.OK), Warn: doctor.Count(findings, doctor.Warn), Fail: doctor.Count(findings, doctor.Fail), Checks: findings,
	}
	if asJSON {
		if err := printJSON(s, f); err != nil {
			return err
		}
	} else {
		w := newTable(s.out)
		for _, x := range findings {
			w.row("%s\t%s\t%s\t%s", x.State, x.Area, x.Name, x.Found)
			if x.Remedy != "" {
				w.row("\t\t\t→ %s", x.Remedy)
			}
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
	if f.Fail > 0 {
		return &exitError{exitFailed, fmt.Errorf("of %s: failed %d, warned %d", plural(len(findings), "check"), f.Fail, f.Warn)}
	}
	return nil
}
