package partition

import (
	"fmt"
	"slices"
	"strings"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// world is the durable side of the simulation: the raw log, Postgres and Kafka, faithful in what the protocol
// asks of them: the fence, compare and swap, the ledger and its floor.
type world struct {
	log    []stream.Record // ascending; offsets have gaps
	epoch  stream.Epoch    // of the owner row
	lanes  stream.Epoch    // a transaction of an older epoch cannot commit: its lanes were initialised
	rows   map[stream.Key]*row
	ledger []entry // position is base + index
	base   int64   // positions below are deleted
	saved  commit.FrontierWrite
	// What was ever published, for the oracle.
	published map[stream.Key][]commit.Commit // as they were handed in
	observed  map[stream.Key][]commit.Commit // the same by observation
	dead      map[int64]int
	aside     map[int64]int
	discarded map[int64]bool
	requests  []*request
	mended    bool // what no retry could publish can be published now
	compacted map[int64]bool
	fault     func(format string, args ...any)
	// checkedTo is the offset below which all is known to be done.
	checkedTo int
}

type row struct {
	current   commit.Checkpoint
	prepared  *commit.Commit
	aside     map[int64]stream.Record
	discarded stream.Revision
}

type entry struct {
	commit.Entry
	key    stream.Key
	rev    stream.Revision
	noRow  bool
	marker bool // a transaction's marker takes a position too
}

func newWorld(fault func(string, ...any)) *world {
	return &world{
		rows: map[stream.Key]*row{}, published: map[stream.Key][]commit.Commit{}, observed: map[stream.Key][]commit.Commit{}, dead: map[int64]int{}, discarded: map[int64]bool{},
		aside: map[int64]int{}, compacted: map[int64]bool{}, fault: fault,
		saved: commit.FrontierWrite{Frontier: stream.Frontier{Next: stream.Revision{Generation: 1}, LeaderEpoch: -1}},
	}
}

func (w *world) fenced(t *commit.Tenure) error {
	if t.Epoch == w.epoch {
		return nil
	}
	return &commit.FencedError{Partition: t.Partition, Held: t.Epoch, Owner: w.epoch}
}

func (w *world) row(k stream.Key) *row {
	if w.rows[k] == nil {
		w.rows[k] = &row{}
	}
	return w.rows[k]
}

// prepare is Store.Prepare for one commit; current says that it is promoted already.
func (w *world) prepare(c commit.Commit) (current bool, err error) {
	if err := w.fenced(c.Tenure); err != nil {
		return false, err
	}
	r := w.row(c.Key)
	switch {
	case r.prepared != nil && r.prepared.ID == c.ID:
		return false, nil
	case r.current.Revision == c.Revision && string(r.current.State) == string(c.Next.State):
		return true, nil
	case r.prepared != nil && r.prepared.Revision == c.Base:
		// I6: what a prepare folds in is published.
		if !w.isPublished(c.Key, c.Base) {
			w.fault("prepare of %s over %s of %q, which is not published", c.Revision, c.Base, c.Key)
		}
		if _, ok := r.aside[c.Base.Offset]; ok {
			w.fault("prepare of %s folds %s of %q, which is still in quarantine (H10)", c.Revision, c.Base, c.Key)
		}
		r.current, r.prepared = r.prepared.Next, &c
	case r.prepared != nil:
		return false, &commit.BusyError{Key: c.Key, Prepared: r.prepared.Revision}
	case r.current.Revision == c.Base:
		r.prepared = &c
	default:
		return false, &commit.ConflictError{Key: c.Key, Want: c.Base, Actual: r.current.Revision}
	}
	return false, nil
}

// stands reports whether the commit itself is prepared, or current.
func (w *world) stands(c commit.Commit) bool {
	r := w.row(c.Key)
	return r.prepared != nil && r.prepared.ID == c.ID || r.current.Revision == c.Revision
}

func (w *world) isPublished(k stream.Key, rev stream.Revision) bool {
	for _, c := range slices.Backward(w.observed[k]) { // asked for are the latest ones
		if c.Revision == rev {
			return true
		}
	}
	return false
}

// byObservation parts a commit by the identities of its outputs.
func byObservation(c commit.Commit) []commit.Commit {
	var parts []commit.Commit
	for _, offset := range c.Offsets() {
		p := c
		p.Revision.Offset, p.Outputs = offset, nil
		for _, o := range c.Outputs {
			if strings.HasPrefix(header(o, stream.HeaderID), fmt.Sprintf("raw/1/3/%d/", offset)) {
				p.Outputs = append(p.Outputs, o)
			}
		}
		parts = append(parts, p)
	}
	return parts
}

func header(o commit.Output, name string) string {
	for _, h := range o.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// publish is one transaction of one commit under an epoch.
func (w *world) publish(t *commit.Tenure, c commit.Commit) (position int64, err error) {
	if t.Epoch < w.lanes {
		return 0, &commit.FencedError{Partition: t.Partition, Held: t.Epoch, Reason: "lane fenced"}
	}
	if c.NoRow {
		w.dead[c.Revision.Offset]++
	} else {
		if all := w.published[c.Key]; c.Deferred && len(all) > 0 && all[len(all)-1].Revision != c.Base {
			w.fault("%s of %q is published over %s, the last one is %s (I5)", c.Revision, c.Key, c.Base, all[len(all)-1].Revision)
		}
		w.published[c.Key] = append(w.published[c.Key], c)
		w.observed[c.Key] = append(w.observed[c.Key], byObservation(c)...)
	}
	w.ledger = append(w.ledger, entry{Entry: commit.EntryOf(&c, nil), key: c.Key, rev: c.Revision, noRow: c.NoRow}, entry{marker: true})
	return w.base + int64(len(w.ledger)) - 2, nil
}

// persist is Store.Persist for one checkpoint.
func (w *world) persist(p commit.Persist) error {
	if err := w.fenced(p.Tenure); err != nil {
		return err
	}
	r := w.row(p.Key)
	switch {
	case r.prepared != nil:
		return &commit.BusyError{Key: p.Key, Prepared: r.prepared.Revision}
	case r.current.Revision == p.Next.Revision && string(r.current.State) == string(p.Next.State):
		return nil
	case r.current.Revision != p.Base:
		return &commit.ConflictError{Key: p.Key, Want: p.Base, Actual: r.current.Revision}
	}
	is := false
	for _, c := range slices.Backward(w.published[p.Key]) {
		if is {
			break
		}
		is = c.Revision == p.Next.Revision && (string(c.Next.State) == string(p.Next.State) || garbled(p.Next))
	}
	if !is {
		w.fault("persist of %s of %q, state %s, which is not what was published (I6)", p.Next.Revision, p.Key, p.Next.State)
	}
	r.current = p.Next
	return nil
}

// garbled says that a rebuilt state differed from the published one.
func garbled(c commit.Checkpoint) bool { return strings.HasPrefix(string(c.State), "garbled") }

// rebuild is what Recovery lists: the published entries at or above the frontier that no row covers.
func (w *world) rebuild() []commit.Rebuild {
	var all []commit.Rebuild
	at := map[stream.Key]stream.Revision{}
	for i, e := range w.ledger {
		if w.base+int64(i) < w.saved.LedgerFloor || e.marker || e.noRow || e.rev.Compare(w.saved.Frontier.Next) < 0 {
			continue
		}
		r := w.row(e.key)
		if _, ok := at[e.key]; !ok {
			at[e.key] = r.current.Revision
		}
		if at[e.key].Covers(e.rev) || r.discarded.Covers(e.rev) {
			continue
		}
		if at[e.key] != e.Base {
			w.fault("%s of %q in the ledger is over %s, its row or the entry before is at %s", e.rev, e.key, e.Base, at[e.key])
		}
		at[e.key] = e.rev
		all = append(all, commit.Rebuild{Position: w.base + int64(i), Entry: e.Entry})
	}
	return all
}

func (w *world) promote(p commit.Promotion) error {
	if err := w.fenced(p.Tenure); err != nil {
		return err
	}
	r := w.row(p.Key)
	if r.prepared == nil || r.prepared.ID != p.ID {
		if !r.current.Revision.Covers(p.Revision) {
			w.fault("promotion of %s of %q, neither prepared nor current", p.Revision, p.Key)
		}
		return nil
	}
	if !w.isPublished(p.Key, p.Revision) {
		w.fault("promotion of %s of %q before its outputs are published (I6)", p.Revision, p.Key)
	}
	r.current, r.prepared = r.prepared.Next, nil
	w.leave(p.Key, r.current.Revision)
	return nil
}

// finish is Recovery.FinishKey: what the ledger has is promoted, all else is published first.
func (w *world) finish(t *commit.Tenure, k stream.Key) error {
	if err := w.fenced(t); err != nil {
		return err
	}
	r := w.row(k)
	if r.prepared == nil {
		return nil
	}
	if !w.inLedger(k, r.prepared.Revision) {
		if w.cursed(*r.prepared) {
			if len(r.prepared.Earlier) > 0 {
				r.prepared = nil // taken out of the row
				return nil
			}
			return fmt.Errorf("publish: %w", commit.ErrPermanent)
		}
		if _, err := w.publish(t, *r.prepared); err != nil {
			return err
		}
	}
	r.current, r.prepared = r.prepared.Next, nil
	w.leave(k, r.current.Revision)
	return nil
}

// inLedger looks as a recovery does: from the saved floor on.
func (w *world) inLedger(k stream.Key, rev stream.Revision) bool {
	for i, e := range w.ledger {
		if w.base+int64(i) >= w.saved.LedgerFloor && !e.marker && !e.noRow && e.key == k && e.rev == rev {
			return true
		}
	}
	return false
}

func (w *world) saveFrontier(f commit.FrontierWrite) error {
	if err := w.fenced(f.Tenure); err != nil {
		return err
	}
	below, lower := f.Frontier.Next.Compare(w.saved.Frontier.Next) < 0, f.LedgerFloor < w.saved.LedgerFloor
	if below || lower {
		if !below && f.Frontier != w.saved.Frontier || !lower && f.LedgerFloor != w.saved.LedgerFloor {
			w.fault("frontier %s floor %d after %s floor %d: one is lower, the other not", f.Frontier, f.LedgerFloor, w.saved.Frontier, w.saved.LedgerFloor)
		}
		return nil // leaves the row and is success
	}
	w.saved = f
	for ; w.checkedTo < len(w.log) && w.log[w.checkedTo].Offset < f.Frontier.Next.Offset; w.checkedTo++ {
		r := w.log[w.checkedTo]
		if !w.isDone(&r) {
			w.fault("frontier %s passes %d of %q, which is not done (I3)", f.Frontier, r.Offset, r.Key)
		}
	}
	// Retention of the ledger: the owner deletes what is below the floor.
	if n := f.LedgerFloor - w.base; n > 0 {
		w.ledger = w.ledger[n:]
		w.base = f.LedgerFloor
	}
	return nil
}

// isDone reports whether a record's effect is durable.
func (w *world) isDone(r *stream.Record) bool {
	rev := stream.Revision{Generation: 1, Offset: r.Offset}
	row := w.row(stream.Key(r.Key))
	stored := row.current.Revision.Covers(rev) || row.prepared != nil && row.prepared.Revision.Covers(rev)
	return w.dead[r.Offset] > 0 || w.aside[r.Offset] > 0 || w.discarded[r.Offset] || w.compacted[r.Offset] && !w.isPublished(stream.Key(r.Key), rev) ||
		stored && w.isPublished(stream.Key(r.Key), rev)
}

func (w *world) quarantine(q commit.Quarantined, full bool) error {
	if err := w.fenced(q.Tenure); err != nil {
		return err
	}
	r := w.row(q.Key)
	if _, there := r.aside[q.Revision.Offset]; full && !there {
		if r.prepared != nil && r.prepared.Revision == q.Revision {
			r.prepared = nil // the dead letter is the evidence
		}
		return fmt.Errorf("no room: %w", commit.ErrQuarantineFull)
	}
	w.aside[q.Revision.Offset] = 1 // the same observation twice is success
	if r.aside == nil {
		r.aside = map[int64]stream.Record{}
	}
	r.aside[q.Revision.Offset] = q.Record
	if r.prepared != nil && r.prepared.Revision == q.Revision {
		r.prepared = nil // moves into the quarantine row (H10)
	}
	return nil
}

func (w *world) restore(k stream.Key) commit.Restored {
	r := w.row(k)
	out := commit.Restored{Key: k, Checkpoint: r.current, Quarantined: len(r.aside) > 0, Discarded: r.discarded}
	if r.prepared != nil {
		c := *r.prepared
		out.Prepared = &c
	}
	return out
}

// cursed says that no retry can publish the commit, until it is mended.
func (w *world) cursed(c commit.Commit) bool {
	if w.mended && w.dead[c.Revision.Offset] == 0 || c.NoRow || len(c.Outputs) == 0 {
		return false
	}
	for _, o := range c.Outputs {
		if strings.HasPrefix(string(o.Value), "!c") {
			return true
		}
	}
	return false
}

// lose lets the log lose observations that are not done, before a new owner reads them: published ones too.
func (s *sim) lose() {
	for !s.quiet && s.decay.Float64() < s.pace {
		var left []int64
		for _, r := range s.world.log {
			if r.Offset >= s.world.saved.Frontier.Next.Offset {
				left = append(left, r.Offset)
			}
		}
		if len(left) == 0 {
			return
		}
		offset := left[s.decay.IntN(len(left))]
		if offset == left[len(left)-1] {
			continue // the log's last one stays: no later one would show that it is gone
		}
		s.world.compacted[offset] = true
		s.trace("%s the log loses %d", s.now.Sub(toyStart()), offset)
	}
}

// flavour says which map an owner's solver has.
func (s *sim) flavour(e stream.Epoch) int {
	if !s.fickle {
		return 0
	}
	return int(e % 2)
}
