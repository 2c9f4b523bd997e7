package metrics

// meaning is the help text of a counter of partition.Stats.
func meaning(counter string) string {
	switch counter {
	case "offered":
		return "Deliveries of records to partitions; each moves exactly one of queued, poison, suppressed, deferred and set_aside."
	case "queued":
		return "Deliveries that were queued for their key."
	case "poison":
		return "Records that can never be decided; they become dead letters."
	case "suppressed":
		return "Deliveries of what is durably done already."
	case "deferred":
		return "Deliveries that found no room, or that are in hand already."
	case "coalesced":
		return "Deliveries of what is in hand already, within deferred."
	case "set_aside":
		return "Deliveries that followed their key into quarantine."
	case "spilled":
		return "Observations that were let go of for want of room; they are fetched again."
	case "missing":
		return "Spilled observations that the log did not have any more."
	case "dispatched":
		return "Jobs handed to a solver."
	case "cached":
		return "Jobs sent without their state, to the replica that has it."
	case "trip_misses":
		return "Jobs sent without their state that the replica did not have."
	case "resent":
		return "Jobs sent again, byte for byte, after a time-out."
	case "accepted":
		return "Results that decided."
	case "parked":
		return "Results kept until their job goes out."
	case "rejected":
		return "Results that decided nothing."
	case "quarantined_results":
		return "Results of one identity with another content."
	case "committed":
		return "Observations whose outputs became durable."
	case "commits":
		return "Commits of those observations: several of one key that wait together have one."
	case "narrowed":
		return "Jobs of several observations that failed for good and were tried again in smaller ones."
	case "terminal":
		return "Observations that were decided without matching, within committed."
	case "reset":
		return "Resets of keys' histories, within committed."
	case "conflict":
		return "Commits refused because the stored row was not their base."
	case "fenced":
		return "Partitions that another owner took."
	case "persisted":
		return "Published observations whose checkpoint became durable (mode deferred, and what was rebuilt)."
	case "rebuilt":
		return "Published observations that were decided again after a takeover, to rebuild their state."
	case "diverged":
		return "Of rebuilt: those whose state differs from what was published; a reset follows."
	case "promoted":
		return "Published commits that were promoted at a tick; the others are folded into their key's next prepare."
	case "blocked":
		return "Times that a key had to wait before it was tried again."
	case "retried":
		return "Tries after such a wait."
	case "quarantined_keys":
		return "Keys that were quarantined; a key once."
	case "quarantined_records":
		return "Observations written to the quarantine table."
	case "released":
		return "Observations that an operator released from quarantine."
	case "discarded":
		return "Observations that an operator discarded from quarantine."
	case "evicted":
		return "Idle keys that left memory."
	case "late":
		return "Observations that were committed past their region's freshness budget; nothing is decided by it."
	case "held":
		return "Times that a key had to wait for admission."
	}
	return "What the partitions count as " + counter + "."
}
