package mutations

import "slices"

// mutations lists the seeded faults.
func mutations() []mutation {
	return slices.Concat(ordering(), ledger(), protocolFaults(), runs())
}

// ordering are faults of order, fencing and completion in the core.
func ordering() []mutation {
	return []mutation{
		{"I13 drop the fence check", partition, "machine.go", "if m.ended || commit.ClassOf(err) != commit.Fenced {", "if true || commit.ClassOf(err) != commit.Fenced {"},
		{
			"I6 promote before publish", partition, "decide.go", "	m.emit(Commit{Commit: k.job.commit, Recorded: recorded})\n",
			"	m.emit(Commit{Commit: k.job.commit, Recorded: recorded})\n	m.promoting++\n	m.emit(Promote{Promotions: []commit.Promotion{{" +
				"Tenure: m.tenure, Key: k.name, Revision: k.job.commit.Revision, ID: k.job.commit.ID}}})\n",
		},
		{
			"A3 complete a suppressed record early", partition, "reader.go", "	case isLost, isPublic, isDone, isDeadLetter:\n",
			"	case isLost, isPublic, isDone, isDeadLetter:\n		m.complete(r.Offset, isDone)\n",
		},
		{"I3 the frontier passes what is spilled", partition, "frontier.go", "		if e.mark < isDone {\n", "		if e.mark < isSpilled {\n"},
		{"A13 the frontier passes what is not persisted", partition, "frontier.go", "		if e.mark < isDone {\n", "		if e.mark < isPublic {\n"},
		{"I8 any result decides", partition, "validate.go", "in.Revision == head && in.Job == k.job.id && ", "in.Revision == head && "},
		{"I11 a finished prepared commit releases the head", partition, "restore.go", "		k.foreign, k.loaded = -1, false\n", "		k.foreign, k.loaded = -1, false\n		if k.head != nil {\n			m.finishHead(k, isDone)\n		}\n"},
		{"I7 a retry of another commit", partition, "scheduler.go", "	case commitAgain:\n", "	case commitAgain:\n		k.job.commit.Outputs = append(k.job.commit.Outputs, k.job.commit.Outputs...)\n"},
		{"P1 finish what we published ourselves", partition, "restore.go", "	own := row.Prepared != nil &&", "	own := false && row.Prepared != nil &&"},
		{"P2 overtake what is spilled", partition, "reader.go", "	if len(k.spill) > 0 && k.spill[0].offset != offset {\n", "	if false {\n"},
		{"I2 done before it stands in quarantine", partition, "quarantine.go", "		if err != nil || k.head == nil ||", "		if k.head == nil ||"},
		{"P4 a job's place is not given back", partition, "scheduler.go", "		m.jobs--\n", ""},
		{"A3 what the log has lost is never done", partition, "spill.go", "			m.stats.Missing++\n			m.endUndecided(offset)\n", "			m.stats.Missing++\n"},
		{"A15 a drain does not wait for commits", partition, "drain.go", "		if m.jobs > 0 || ", "		if "},
		{"A15 a drain leaves dirty keys", partition, "drain.go", "		if m.dirty > 0 {\n", "		if false {\n"},
		{"A9 a request without the trip over another checkpoint", partition, "dispatch.go", "k.sticky.revision == k.base().Revision", "true"},
	}
}

// ledger are faults of the floor, of persisting and of rebuilding.
func ledger() []mutation {
	return []mutation{
		{"H4 the floor is the ledger's end", partition, "floor.go", "	f := m.ledgerNext\n", "	f := m.ledgerNext\n	return f\n"},
		{"H4 the floor of a key's latest commit", partition, "floor.go", "k.dirty.waiting[0].floor", "k.dirty.waiting[len(k.dirty.waiting)-1].floor"},
		{"H4 a dead letter holds no floor", partition, "committed.go", "		m.holdDead(j.commit.Revision.Offset, j.floor)\n", ""},
		{"H4 nothing holds the floor for what is to be rebuilt", partition, "floor.go", " || len(m.rebuild) > 0", ""},
		{"H16 a dead letter in the ledger is forgotten", partition, "machine.go", "		m.done[offset] = struct{}{}\n", ""},
		{"A13 publish again what was published", partition, "rebuild.go", "	return len(entries) > 0 && entries[0]", "	return false && entries[0]"},
		{"I3 the frontier passes a gap in which something was published", partition, "reader.go", "		m.findLost(r)\n", ""},
		{"I3 the frontier passes what was published and spilled, and is gone", partition, "spill.go", "			m.endUndecided(offset)\n", "			m.complete(offset, isDone)\n"},
		{"I3 the frontier passes what is prepared and not published", partition, "rebuild.go", "		m.owed[offset], m.standing[name] = name, offset\n", "		_, _ = name, offset\n"},
		{"H6 a difference is not looked for", partition, "rebuild.go", "	if err == nil && (commit.OutputsDigest", "	if false && (commit.OutputsDigest"},
		{"H6 a segment that was published is used again", partition, "rebuild.go", "max(p.state.Segment, k.checkpoint.Segment, e.Segment)", "0"},
		{"A13 a persist completes what came after it", partition, "persist.go", "n < len(d.waiting) && d.waiting[n].offset <= rev.Offset", "n < len(d.waiting)"},
		{"A13 a persist over the wrong base", partition, "persist.go", "	d.base, d.waiting = rev, d.waiting[n:]\n", "	d.waiting = d.waiting[n:]\n	d.base.Offset = rev.Offset + 1\n"},
		{"A13 a stored revision is not adopted", partition, "persist.go", "k.dirty.base, k.dirty.proving, k.dirty.urgent = k.dirty.adopt, false, true", "k.dirty.proving, k.dirty.urgent = false, true"},
		{"H9 prepare over a row that is not persisted", partition, "persist.go", "(k.quarantined || !m.cfg.Deferred)", "k.quarantined"},
		{"H10 put aside over a dirty key", partition, "persist.go", "(k.quarantined || !m.cfg.Deferred)", "!m.cfg.Deferred"},
		{"A13 a clean key is evicted dirty", partition, "key.go", "k.dirty != nil || k.partial != nil || k.foreign >= 0 {", "k.partial != nil || k.foreign >= 0 {"},
	}
}

// protocolFaults are faults of the stages and of recovery.
func protocolFaults() []mutation {
	return []mutation{
		{"C7 publish what the ledger has", protocol, "recovery.go", "case passedBy(&c, s.Frontier), led.has(c.Key, c.Revision):", "case passedBy(&c, s.Frontier):"},
		{"C7 promote what the ledger lacks", protocol, "recovery.go", "case passedBy(&c, s.Frontier), led.has(c.Key, c.Revision):", "case true:"},
		{"C2 publish before prepare", protocol, "pipeline.go", "	unprepared := c.NoRow || c.Deferred\n", "	unprepared := true\n"},
		{"C6 a lost tenure's commits go on", protocol, "pipeline.go", "		if err := t.Err(); err != nil {\n			p.leave", "		if err := t.Err(); false {\n			p.leave"},
		{"C3 a failed commit is told published", protocol, "pipeline.go", "			p.leave(s, Outcome{Err: err})\n			continue\n", "			p.leave(s, Outcome{})\n			continue\n"},
		{"H9 rebuild over a state that no row has", protocol, "recovery.go", "				if e.Entry.Base != at {\n", "				if false {\n"},
		{"H6 what is persisted is rebuilt", protocol, "recovery.go", "at.Covers(last) || row.Discarded.Covers(last)", "row.Discarded.Covers(last)"},
		{"H10 what was released counts as published below the frontier", protocol, "recovery.go", "	return !c.Released && ", "	return "},
	}
}
