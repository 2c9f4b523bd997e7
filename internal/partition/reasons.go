package partition

import (
	"cmp"
	"maps"
	"slices"

	"milepost/internal/commit"
)

// Lists are the workload's closed lists of reasons. Statistics tell them apart; one that is in no list counts as unlisted, so
// that neither a record nor a solver's answer can make a name of its own.
type Lists struct{ Poison, Terminal, Reset []string }

// The machine's own reasons, closed lists like the workload's.
const (
	// Of suppressed deliveries.
	BelowFrontier = "below_frontier"
	Covered       = "covered" // by the key's checkpoint, or by the ledger

	// Of deferred deliveries.
	Capacity  = "capacity"
	Duplicate = "duplicate" // in hand

	// Of rejected results.
	Obsolete        = "obsolete"         // of an observation that is done, or an error of no active job
	Malformed       = "malformed"        // no decision at all
	Superseded      = "superseded"       // accepted once, but its commit failed and its key's job is another now
	UnknownKey      = "unknown_key"      // of a key that is not in memory
	OtherGeneration = "other_generation" // of another life of the raw topic
	OtherBase       = "other_base"       // of the active observation, but not over its checkpoint
	Repeated        = "repeated"         // of a decision that is being committed, or of a parked result
	NoRoom          = "no_room"          // came before its job, and as many are parked as may be
	StrayMiss       = "stray_trip_miss"  // a trip miss that nobody waits for
	OfQuarantined   = "quarantined_key"  // of a key in quarantine

	// Of poison records, whatever the workload says.
	missingKey  = "missing_key"
	undecodable = "undecodable"
	unreadable  = "unreadable"

	// Unlisted stands for a poison or reset reason that is in no list.
	Unlisted = "unlisted"
	// Internal is the terminal reason of a terminal without a listed one (A11).
	Internal = "internal"
)

// Reasons are parts of counters, by reason. They add up to their counters.
type Reasons map[ByReason]int64

// ByReason names the part of a counter, as Stats.All names it, that one reason accounts for.
type ByReason struct{ Counter, Reason string }

// Plus adds two machines' reasons.
func (r Reasons) Plus(o Reasons) Reasons {
	sum := make(Reasons, max(len(r), len(o)))
	maps.Copy(sum, r)
	for by, n := range o {
		sum[by] += n
	}
	return sum
}

// AtLeast gives the higher of each.
func (r Reasons) AtLeast(o Reasons) Reasons {
	highest := make(Reasons, max(len(r), len(o)))
	maps.Copy(highest, r)
	for by, n := range o {
		highest[by] = max(highest[by], n)
	}
	return highest
}

// Reasons lists every reason that a counter can have; nil: its parts are not counted.
func (l Lists) Reasons(counter string) []string {
	switch counter {
	case "poison":
		return l.poison()
	case "suppressed":
		return []string{BelowFrontier, Covered}
	case "deferred":
		return []string{Capacity, Duplicate}
	case "rejected":
		return []string{Obsolete, Malformed, Superseded, UnknownKey, OtherGeneration, OtherBase, Repeated, NoRoom, StrayMiss, OfQuarantined}
	case "terminal":
		return listed(l.Terminal, Internal)
	case "reset":
		return append(slices.Clone(l.Reset), Unlisted)
	}
	return nil
}

// poison are the workload's reasons and the machine's own.
func (l Lists) poison() []string {
	list := slices.Clone(l.Poison)
	for _, own := range []string{missingKey, undecodable, unreadable, Unlisted} {
		list = listed(list, own)
	}
	return list
}

func listed(list []string, other string) []string {
	if slices.Contains(list, other) {
		return slices.Clone(list)
	}
	return append(slices.Clone(list), other)
}

// known gives a reason that is in the counter's list.
func known(list []string, reason, other string) string {
	if slices.Contains(list, reason) {
		return reason
	}
	return other
}

func (m *Machine) because(counter, reason string) {
	if m.reasons == nil {
		m.reasons = Reasons{}
	}
	m.reasons[ByReason{counter, reason}]++
}

func (m *Machine) suppress(reason string) {
	m.stats.Suppressed++
	m.because("suppressed", reason)
}

func (m *Machine) deferred(reason string) {
	m.stats.Deferred++
	m.because("deferred", reason)
}

func (m *Machine) reject(reason string) {
	m.stats.Rejected++
	m.because("rejected", reason)
}

func (m *Machine) poisoned(p *commit.PoisonError) {
	m.stats.Poison++
	m.because("poison", known(m.cfg.Reasons.poison(), p.Reason, Unlisted))
}

// countCommit counts a durable commit with its observations, and within them the terminals that they are and the resets that they carry. A
// reset may be one that the restore left, riding on any decision.
func (m *Machine) countCommit(j *job) {
	m.stats.Commits++
	for _, t := range j.planned {
		m.countCommitted(j, t.terminal, t.reset)
	}
}

func (m *Machine) countCommitted(j *job, terminal, reset string) {
	m.stats.Committed++
	switch j.decision.Kind {
	case Terminal:
		terminal = cmp.Or(terminal, j.decision.Reason, Internal)
	case Reset:
		reset = cmp.Or(reset, j.decision.Reason, Unlisted)
	case Solved:
	}
	if terminal != "" {
		m.stats.Terminals++
		m.because("terminal", known(m.cfg.Reasons.Terminal, terminal, Internal))
	}
	if reset != "" {
		m.stats.Resets++
		m.because("reset", known(m.cfg.Reasons.Reset, reset, Unlisted))
	}
}
