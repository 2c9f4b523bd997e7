package main

import "github.com/spf13/cobra"

// withoutBroker makes dev what it is in a build with tag nodev, which has no broker and fetches no Postgres: without --brokers it ends
// at once.
func withoutBroker(dev *cobra.Command) *cobra.Command {
	dev.Short = "Run a simulated fleet and a worker on your broker"
	dev.Long = `Run a seeded fleet that drives legal routes and reports positions with GPS noise, and a worker that matches them to the road while
they drive, on the broker of --brokers and the database of --dsn (empty: a local one, where Postgres is installed), under names of this
run's own. The build with all it needs runs from the repository: make demo.

The figures are counted by an independent reader of the topics (read_committed) and from Postgres, not by the worker.`
	dev.Example = `  orchestrator dev --brokers 127.0.0.1:9092 --dsn postgres://milepost@db/milepost --map delaware.osm.pbf
  orchestrator dev --brokers 127.0.0.1:9092 --dsn postgres://milepost@db/milepost --map delaware.osm.pbf --for 20s --json`
	run := dev.RunE
	dev.RunE = func(cmd *cobra.Command, a []string) error {
		sources, err := settle(cmd.Flags())
		if err != nil {
			return err
		}
		if sources["brokers"] == fromDefault {
			return usagef("--brokers must be set (or MILEPOST_BROKERS): this build has no broker of its own; make demo, in the repository, runs one that has")
		}
		return run(cmd, a)
	}
	return dev
}
