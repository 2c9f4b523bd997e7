package main

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"milepost/internal/commit"
	"milepost/internal/consumer"
	"milepost/internal/counter"
	"milepost/internal/fleet"
	"milepost/internal/metrics"
	"milepost/internal/partition"
)

// meters are the worker's metrics and where they are read.
type meters struct {
	*metrics.Metrics
	regions    *metrics.RegionMetrics
	membership consumer.Membership
	parts      atomic.Pointer[parts] // nil until the worker is built
}

// parts are what a scrape reads.
type parts struct {
	consumer *consumer.Consumer
	pipeline *commit.Pipeline
	pools    *fleet.Pools
	credits  *partition.Credits
	version  func() int64 // of the catalog in force
}

func newMetrics(reg prometheus.Registerer, workload string) *meters {
	m := &meters{Metrics: metrics.New(reg, metrics.Config{Reasons: reasons(workload), Turns: consumer.Turns()})}
	m.Watch(m)
	m.regions = metrics.NewRegions(reg, m.readRegions)
	return m
}

// readRegions is what a scrape reads of the regions.
func (m *meters) readRegions() metrics.Regions {
	p := m.parts.Load()
	if p == nil {
		return metrics.Regions{Usage: []partition.Usage{{}, {Region: fleet.DefaultRegion}}}
	}
	return metrics.Regions{Usage: p.credits.Usage(), Version: p.version(), Graphs: p.pools.Graphs()}
}

// reasons are a workload's closed lists.
func reasons(workload string) partition.Lists {
	if workload == workloadCounter {
		return partition.Lists{Poison: counter.PoisonReasons(), Reset: counter.ResetReasons()}
	}
	return partition.Lists{Poison: fleet.PoisonReasons(), Terminal: fleet.TerminalReasons(), Reset: fleet.ResetReasons()}
}

// observer gives what the consumer tells, counted; changed is called when the group may have changed.
func (m *meters) observer(changed func()) consumer.Observer {
	return consumer.Observer{
		GroupChanged: changed, Acquired: m.Acquired, Recovered: m.Recovered, Ended: m.Ended, FetchError: m.FetchError,
		Gap: m.Gap, Difference: m.Difference, DataLoss: m.DataLoss, Expired: m.Expired, Solved: m.Solved, Committed: m.Committed, Turned: m.Turned, Late: m.regions.Late,
	}
}

// watch lets scrapes read the running parts.
func (m *meters) watch(p parts) { m.parts.Store(&p) }

// Partitions implements metrics.Source.
func (m *meters) Partitions() []metrics.Partition {
	p := m.parts.Load()
	if p == nil {
		return nil
	}
	var all []metrics.Partition
	for _, s := range p.consumer.Status() {
		all = append(all, metrics.Partition{
			Name: s.Partition, State: s.State.String(), Epoch: s.Epoch, Saved: s.Saved, End: s.End, Stable: s.Stable, View: s.View,
		})
	}
	return all
}

// Generation implements metrics.Source.
func (m *meters) Generation() int32 {
	_, generation := m.membership.Generation()
	return generation
}

// Waiting implements metrics.Source.
func (m *meters) Waiting() map[string]int {
	waiting := map[string]int{"prepare": 0, "publish": 0, "solve": 0}
	if p := m.parts.Load(); p != nil {
		waiting["prepare"], waiting["publish"] = p.pipeline.Depth()
		waiting["solve"] = p.pools.Queued()
	}
	return waiting
}
