package mutations

// runs are faults of jobs and commits of several observations (F21).
func runs() []mutation {
	return []mutation{
		{"F21 a run begins with what is covered", partition, "scheduler.go", "	case k.covers(k.head.obs.Identity.Revision):\n", "	case false:\n"},
		{"F21 a run crosses a poison record", partition, "run.go", "it.poison != nil || ", ""},
		{"F21 a run crosses the end of an entry", partition, "run.go", "		most = min(most, len(m.rebuild[k.name][0].Entry.Offsets)-k.taken())\n", ""},
		{"F21 a run crosses the point where its key begins anew", partition, "run.go", " || before.Compare(m.anew.Before) < 0", ""},
		{"F21 each is planned over the state before the run", partition, "run.go", "j.planOne(m.stateOver(all.Next), it.obs, j.about(i))", "j.planOne(m.state(k), it.obs, j.about(i))"},
		{"F21 an answer is about the observation before its own", partition, "run.go", "		d.Answer = j.decision.More[i-1]\n", ""},
		{"F21 one that cannot be decided stops those before it", partition, "run.go", "	if tried < 2 {\n", "	if true {\n"},
		{"F21 what failed is tried in the same run again", partition, "run.go", "		most = min(most, k.narrow)\n", ""},
		{"F21 another job after a conflict", partition, "run.go", "		return k.job.run // the same", "		// the same"},
		{"F21 the commit names its last observation alone", partition, "run.go", "		all.Earlier = append(all.Earlier, all.Next.Revision.Offset)\n", ""},
		{"F21 more answers than observations", partition, "validate.go", " && (!active || len(in.Decision.More) < k.job.run)", ""},
		{"F21 the frontier passes those before the last, not persisted", partition, "committed.go", "j.commit.Offsets(), j.floor", "[]int64{j.commit.Revision.Offset}, j.floor"},
		{"F21 the first alone is rebuilt", partition, "rebuild.go", "	if p.taken == len(e.Offsets) {\n", "	if p.taken >= 1 {\n"},
		{"F21 the frontier passes those before an entry's last, rebuilt and not persisted", partition, "rebuild.go", "m.makeDirty(k, &c, e.Offsets, ", "m.makeDirty(k, &c, e.Offsets[len(e.Offsets)-1:], "},
		{"F21 a part of an entry is compared", partition, "rebuild.go", "append(p.outputs, plan.Outputs...)", "plan.Outputs"},
		{"F21 what follows a lost observation of an entry is decided", partition, "rebuild.go", "	if k.partial == nil || k.partial.err == nil || ", "	if true || "},
		{"F21 the fetch pauses before an entry's last observation", partition, "reader.go", "		ahead = 0 // an entry", "		// an entry"},
		{"F21 a key is evicted in the middle of an entry", partition, "key.go", "k.dirty != nil || k.partial != nil || k.foreign >= 0 {", "k.dirty != nil || k.foreign >= 0 {"},
		{"F21 the ledger names the last observation alone", protocol, "codec.go", "Offsets: c.Offsets(), Segment", "Offsets: []int64{c.Revision.Offset}, Segment"},
		{"F21 the row forgets which observations its commit is of", protocol, "codec.go", ", Earlier: c.Earlier}\n", "}\n"},
		{"F21 a run that cannot be published stays in its row", protocol, "recovery.go", "	return len(c.Earlier) > 0 && ", "	return false && "},
		{"F21 what a broker that is away refuses leaves its row", protocol, "recovery.go", "(class == Permanent || class == Poison)", "(class == Permanent || class == Poison || class == Transient)"},
		{"F21 the evidence of one observation leaves its row", protocol, "recovery.go", "	return len(c.Earlier) > 0 && ", "	return "},
	}
}
