package partition

import "iter"

// counter is one of the statistics, with the name that metrics and logs give it.
type counter struct {
	name  string
	value *int64
}

// counters lists them all, in the order of a record's life.
func (s *Stats) counters() []counter {
	return []counter{
		{"offered", &s.Offered},
		{"queued", &s.Queued},
		{"poison", &s.Poison},
		{"suppressed", &s.Suppressed},
		{"deferred", &s.Deferred},
		{"coalesced", &s.Coalesced},
		{"set_aside", &s.SetAside},
		{"spilled", &s.Spilled},
		{"missing", &s.Missing},
		{"dispatched", &s.Dispatched},
		{"cached", &s.Cached},
		{"trip_misses", &s.TripMisses},
		{"resent", &s.Resent},
		{"accepted", &s.Accepted},
		{"parked", &s.Parked},
		{"rejected", &s.Rejected},
		{"quarantined_results", &s.QuarantinedResults},
		{"committed", &s.Committed},
		{"commits", &s.Commits},
		{"terminal", &s.Terminals},
		{"reset", &s.Resets},
		{"conflict", &s.Conflicts},
		{"fenced", &s.Fenced},
		{"promoted", &s.Promoted},
		{"narrowed", &s.Narrowed},
		{"blocked", &s.Blocked},
		{"retried", &s.Retried},
		{"quarantined_keys", &s.QuarantinedKeys},
		{"quarantined_records", &s.QuarantinedRecords},
		{"evicted", &s.Evicted},
		{"persisted", &s.Persisted},
		{"rebuilt", &s.Rebuilt},
		{"diverged", &s.Diverged},
		{"released", &s.Released},
		{"discarded", &s.Discarded},
		{"held", &s.Held},
		{"late", &s.Late},
	}
}

// All gives each counter's name and value.
func (s Stats) All() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for _, c := range s.counters() {
			if !yield(c.name, *c.value) {
				return
			}
		}
	}
}

// AtLeast gives the higher of each counter.
func (s Stats) AtLeast(o Stats) Stats {
	others := o.counters()
	for i, c := range s.counters() {
		*c.value = max(*c.value, *others[i].value)
	}
	return s
}

// Plus adds two machines' statistics.
func (s Stats) Plus(o Stats) Stats {
	others := o.counters()
	for i, c := range s.counters() {
		*c.value += *others[i].value
	}
	return s
}
