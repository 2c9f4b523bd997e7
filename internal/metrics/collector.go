package metrics

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"milepost/internal/partition"
	"milepost/internal/stream"
)

// Source is what is read at every scrape.
type Source interface {
	// Partitions are those that the group has assigned to this process now.
	Partitions() []Partition
	// Generation is the group's; not positive: not a member.
	Generation() int32
	// Waiting is how many commits and jobs wait, by stage: a fixed set of words.
	Waiting() map[string]int
}

// Partition is one of this process's partitions as it stands.
type Partition struct {
	Name        stream.Partition
	State       string       // of a closed list
	Epoch       stream.Epoch // 0: not acquired
	Saved       int64        // the durable frontier
	End, Stable int64        // of its log; -1: not known
	View        partition.View
}

// states lists the states of a partition; one that is not listed counts as other.
func states() []string {
	return []string{"acquiring", "recovering", "running", "draining", "stopped", other}
}

const other = "other"

// Watch lets scrapes read a source.
func (m *Metrics) Watch(s Source) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.source = s
}

// collector reads the partitions at each scrape.
type collector struct {
	m     *Metrics
	stats map[string]*prometheus.Desc
	gauge map[string]*prometheus.Desc
	now   func() time.Time
}

// gauges are the names, labels and meanings of what is read.
func gauges() [][3]string {
	return [][3]string{
		{"frontier", "partition", "Next offset to do; everything below it is durably done."},
		{"ownership_epoch", "partition", "Ownership epoch of a partition of this process."},
		{"lag_records", "partition", "End of the partition's log less its durable frontier."},
		{"stable_lag_records", "partition", "The same to where readers that wait for open transactions can read; less than lag_records: somebody's transaction is open."},
		{"partitions", "state", "Partitions that the group has assigned to this process, by what they do."},
		{"paused_partitions", "", "Partitions whose fetch waits until what is in hand is less."},
		{"keys", "state", "Keys in memory, by what they do; known are all of them."},
		{"queued_observations", "", "Observations in hand."},
		{"queued_bytes", "", "Bytes of the observations in hand."},
		{"spilled_observations", "", "Observations of which the offset alone is kept; they are fetched again."},
		{"unpromoted_commits", "", "Published commits that are not known to be promoted yet."},
		{"oldest_pending_seconds", "", "For how long the oldest observation in hand has waited for its commit; 0: none is in hand."},
		{"waiting", "stage", "Commits and jobs that wait for a stage."},
		{"lanes", "state", "Lanes of the publisher, by what they do."},
		{"group_generation", "", "Generation of the consumer group; 0: not a member."},
	}
}

func newCollector(m *Metrics) *collector {
	c := &collector{m: m, stats: map[string]*prometheus.Desc{}, gauge: map[string]*prometheus.Desc{}, now: time.Now}
	for name := range (partition.Stats{}).All() {
		var labels []string
		if m.lists.Reasons(name) != nil {
			labels = []string{"reason"}
		}
		c.stats[name] = prometheus.NewDesc("milepost_"+name+"_total", meaning(name), labels, nil)
	}
	for _, g := range gauges() {
		var labels []string
		if g[1] != "" {
			labels = []string{g[1]}
		}
		c.gauge[g[0]] = prometheus.NewDesc("milepost_"+g[0], g[2], labels, nil)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, all := range []map[string]*prometheus.Desc{c.stats, c.gauge} {
		for _, d := range all {
			ch <- d
		}
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	parts, counted, source := c.m.read()
	c.collectCounts(ch, counted)
	set := func(name string, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(c.gauge[name], prometheus.GaugeValue, v, labels...)
	}
	c.collectPartitions(set, parts)
	for state, n := range c.m.lanes.count() {
		set("lanes", float64(n), state)
	}
	generation := int32(0)
	if source != nil {
		generation = max(source.Generation(), 0)
		for stage, n := range source.Waiting() {
			set("waiting", float64(n), stage)
		}
	}
	set("group_generation", float64(generation))
}

// read takes one look at the partitions, and adds up their counters with those of ended tenures.
func (m *Metrics) read() ([]Partition, counts, Source) {
	m.mu.Lock()
	source := m.source
	m.mu.Unlock()
	var parts []Partition
	if source != nil {
		parts = source.Partitions() // outside the lock: it takes the consumer's
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.past.plus(partition.Stats{}, nil)
	for _, p := range parts {
		if p.Epoch > m.ends[p.Name] { // else its end has been counted already
			now = now.plus(p.View.Stats, p.View.Reasons)
		}
	}
	// Between a tenure's leaving the partitions and its end being told, its counts are in neither: they stand still.
	m.highest = counts{stats: m.highest.stats.AtLeast(now.stats), reasons: m.highest.reasons.AtLeast(now.reasons)}
	return parts, m.highest, source
}

func (c *collector) collectCounts(ch chan<- prometheus.Metric, sum counts) {
	for name, v := range sum.stats.All() {
		d := c.stats[name]
		list := c.m.lists.Reasons(name)
		if list == nil {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
			continue
		}
		for _, reason := range list {
			n := sum.reasons[partition.ByReason{Counter: name, Reason: reason}]
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), reason)
		}
	}
}

func (c *collector) collectPartitions(set func(name string, v float64, labels ...string), parts []Partition) {
	byState := map[string]int{}
	var sum partition.View
	paused := 0
	var oldest time.Time
	for i := range parts {
		p := &parts[i]
		if slices.Contains(states(), p.State) {
			byState[p.State]++
		} else {
			byState[other]++
		}
		if p.Epoch > 0 {
			number := strconv.Itoa(int(p.Name.Number))
			set("frontier", float64(p.Saved), number)
			set("ownership_epoch", float64(p.Epoch), number)
			if p.End >= 0 {
				set("lag_records", float64(max(p.End-p.Saved, 0)), number)
				set("stable_lag_records", float64(max(p.Stable-p.Saved, 0)), number)
			}
		}
		v := &p.View
		sum.Keys, sum.Waiting, sum.Active = sum.Keys+v.Keys, sum.Waiting+v.Waiting, sum.Active+v.Active
		sum.Committing, sum.Blocked, sum.Quarantined = sum.Committing+v.Committing, sum.Blocked+v.Blocked, sum.Quarantined+v.Quarantined
		sum.Queued, sum.QueuedBytes, sum.Spilled = sum.Queued+v.Queued, sum.QueuedBytes+v.QueuedBytes, sum.Spilled+v.Spilled
		sum.Unpromoted += v.Unpromoted
		if v.Paused {
			paused++
		}
		if t := v.OldestPending; !t.IsZero() && (oldest.IsZero() || t.Before(oldest)) {
			oldest = t
		}
	}
	for _, state := range states() {
		set("partitions", float64(byState[state]), state)
	}
	for state, n := range map[string]int{
		"known": sum.Keys, "waiting": sum.Waiting, "solving": sum.Active, "committing": sum.Committing,
		"blocked": sum.Blocked, "quarantined": sum.Quarantined,
	} {
		set("keys", float64(n), state)
	}
	set("paused_partitions", float64(paused))
	set("queued_observations", float64(sum.Queued))
	set("queued_bytes", float64(sum.QueuedBytes))
	set("spilled_observations", float64(sum.Spilled))
	set("unpromoted_commits", float64(sum.Unpromoted))
	age := 0.0
	if !oldest.IsZero() {
		age = max(c.now().Sub(oldest).Seconds(), 0)
	}
	set("oldest_pending_seconds", age)
}
