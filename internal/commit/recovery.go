package commit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"milepost/internal/stream"
)

// Recovery finishes what an earlier owner of a partition left behind, by one mechanism: read the ledger back.
type Recovery struct {
	Store    Store
	Owners   Owners
	Ledger   Ledger
	Pipeline Submitter
	// Backoff waits before try number attempt (from 1); it returns an error only when ctx has ended.
	Backoff func(ctx context.Context, attempt int) error
}

// Submitter is the part of the Pipeline that recovery needs.
type Submitter interface {
	Submit(c Commit, done func(Outcome))
}

// RecoveryReport is what a recovery found and did (A2).
type RecoveryReport struct {
	Partition     stream.Partition
	Frontier      stream.Frontier
	Epoch         stream.Epoch
	LedgerFloor   int64
	LedgerHighest int64        // the noted end: the first position not read
	Prepared      int          // rows found
	Promoted      int          // of them: published by a former owner
	Published     int          // of them: published now
	Done          []int64      // offsets at or above the frontier that are done without a row (dead letters)
	Failed        []stream.Key // certainly unpublished and could not be published: they start blocked
	// Standing are the offsets of their commits at or above the frontier: it must not pass them as gaps, where the log has lost one, for below
	// it a prepared commit counts as published.
	Standing map[int64]stream.Key
	// Rebuild are the entries at or above the frontier that no row covers, by key and then in order: what they name is
	// published and must be decided again to rebuild its state, never published again.
	Rebuild []Rebuild
}

// Rebuild is a published entry whose checkpoint is lost with its owner's memory.
type Rebuild struct {
	Position int64 // in the ledger
	Entry    Entry
}

// DivergedError says that ledger and rows contradict each other: a database restored to an earlier time, or a
// ledger of another life. No order can be rebuilt from that, so the partition stops (H9).
type DivergedError struct {
	Partition stream.Partition
	Key       stream.Key
	Stored    stream.Revision // what the row has
	Ledger    stream.Revision // what the ledger says was published
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("partition %s: key %q: the ledger says that revision %s was published, the database knows the key only up to %s; "+
		"was the database restored to an earlier time? Restore the newer one, or open a new topic generation",
		e.Partition, e.Key, e.Ledger, e.Stored)
}

// prepared rows a page.
const recoveryPage = 500

// Run recovers the tenure's partition. Every lane id of every former owner has been initialised before. It can be
// broken off by ctx at any point and begun again by anyone: each step is repeated harmlessly.
func (r Recovery) Run(ctx context.Context, t *Tenure, s Start) (RecoveryReport, error) {
	report := RecoveryReport{Partition: t.Partition, Frontier: s.Frontier, Epoch: t.Epoch, LedgerFloor: s.LedgerFloor}
	led, err := r.readLedger(ctx, t, s)
	if err != nil {
		return report, err
	}
	report.LedgerHighest, report.Done = led.end, led.deadLetters

	for after := stream.Key(""); ; {
		page, err := r.Store.Prepared(ctx, t, after, recoveryPage)
		if err != nil {
			return report, fmt.Errorf("list prepared commits of %s: %w", t.Partition, err)
		}
		if err := r.finishPage(ctx, t, s, led, page, &report); err != nil {
			return report, err
		}
		if len(page) < recoveryPage {
			break
		}
		after = page[len(page)-1].Key
	}
	if report.Rebuild, err = r.unpersisted(ctx, t, led); err != nil {
		return report, err
	}
	if err := r.Owners.Recovered(ctx, t, s.Formers); err != nil {
		return report, fmt.Errorf("note the recovery of %s: %w", t.Partition, err)
	}
	return report, nil
}

// ledgerView is what the ledger says about a partition, from its floor on.
type ledgerView struct {
	end         int64
	published   map[stream.Key][]stream.Revision // ascending
	above       map[stream.Key][]Rebuild         // at or above the frontier, in order
	deadLetters []int64                          // at or above the frontier, ascending
}

func (v *ledgerView) has(key stream.Key, rev stream.Revision) bool {
	_, ok := slices.BinarySearchFunc(v.published[key], rev, stream.Revision.Compare)
	return ok
}

func (v *ledgerView) newest(key stream.Key) stream.Revision {
	revs := v.published[key]
	if len(revs) == 0 {
		return stream.Revision{}
	}
	return revs[len(revs)-1]
}

func (r Recovery) readLedger(ctx context.Context, t *Tenure, s Start) (*ledgerView, error) {
	v := &ledgerView{published: map[stream.Key][]stream.Revision{}, above: map[stream.Key][]Rebuild{}}
	end, err := r.Ledger.Settled(ctx, t.Partition, s.LedgerFloor, func(position int64, e Entry) error {
		if !e.DeadLetter && e.last().Compare(s.Frontier.Next) >= 0 {
			v.above[e.Key] = append(v.above[e.Key], Rebuild{Position: position, Entry: e})
		}
		for _, offset := range e.Offsets {
			rev := stream.Revision{Generation: e.TopicGeneration, Offset: offset}
			switch {
			case e.DeadLetter && rev.Compare(s.Frontier.Next) >= 0:
				v.deadLetters = append(v.deadLetters, offset)
			case !e.DeadLetter:
				v.published[e.Key] = append(v.published[e.Key], rev)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the ledger of %s back: %w", t.Partition, err)
	}
	slices.Sort(v.deadLetters)
	for _, revs := range v.published {
		slices.SortFunc(revs, stream.Revision.Compare)
	}
	v.end = end
	return v, nil
}

// finishPage judges a page of prepared rows: published ones are promoted, the others are published and promoted.
func (r Recovery) finishPage(ctx context.Context, t *Tenure, s Start, led *ledgerView, page []Commit, report *RecoveryReport) error {
	var promote, publish []Commit
	for _, c := range page {
		newest := led.newest(c.Key)
		switch {
		case passedBy(&c, s.Frontier), led.has(c.Key, c.Revision):
			promote = append(promote, c)
		case newest.Compare(c.Revision) > 0:
			return &DivergedError{Partition: t.Partition, Key: c.Key, Stored: c.Revision, Ledger: newest}
		default:
			publish = append(publish, c)
		}
	}
	report.Prepared += len(page)
	report.Promoted += len(promote)
	outcomes, err := r.submitAll(ctx, publish)
	if err != nil {
		return err
	}
	for i, o := range outcomes {
		switch {
		case o.Err == nil:
			report.Published++
			promote = append(promote, publish[i])
		case ClassOf(o.Err) == Fenced || ClassOf(o.Err) == Canceled:
			return fmt.Errorf("publish the prepared commit of key %q: %w", publish[i].Key, o.Err)
		case narrows(&publish[i], o.Err) && r.unprepare(ctx, &publish[i]) == nil:
			// Its observations are read again, and decided in smaller runs.
		default:
			report.Failed = append(report.Failed, publish[i].Key)
			if c := &publish[i]; !c.Released && c.Revision.Compare(s.Frontier.Next) >= 0 {
				if report.Standing == nil {
					report.Standing = map[int64]stream.Key{}
				}
				report.Standing[c.Revision.Offset] = c.Key
			}
		}
	}
	return r.promote(ctx, promote)
}

// passedBy reports whether the frontier alone says that a prepared commit was published: below it all is done, and done means
// published (I2, I3). Not so for what an operator released from quarantine, which is done by its quarantine row, nor for an earlier
// topic generation: there the ledger says it, whose floor waits for every prepared row's entry.
func passedBy(c *Commit, f stream.Frontier) bool {
	return !c.Released && c.Revision.Generation == f.Next.Generation && c.Revision.Offset < f.Next.Offset
}

// submitAll publishes commits that stand prepared: their prepare is answered with "already", then the lanes publish them.
func (r Recovery) submitAll(ctx context.Context, cs []Commit) ([]Outcome, error) {
	type answer struct {
		i int
		o Outcome
	}
	answers := make(chan answer, len(cs)) // capacity: every answer, so that done never blocks
	for i, c := range cs {
		r.Pipeline.Submit(c, func(o Outcome) { answers <- answer{i, o} })
	}
	outcomes := make([]Outcome, len(cs))
	for range cs {
		select {
		case a := <-answers:
			outcomes[a.i] = a.o
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return outcomes, nil
}

func (r Recovery) promote(ctx context.Context, cs []Commit) error {
	if len(cs) == 0 {
		return nil
	}
	batch := make([]Promotion, len(cs))
	for i, c := range cs {
		batch[i] = Promotion{Tenure: c.Tenure, Key: c.Key, Revision: c.Revision, ID: c.ID}
	}
	errs, err := r.Store.Promote(ctx, batch)
	if err != nil {
		return fmt.Errorf("promote %d published commits: %w", len(batch), err)
	}
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("promote the published commit of key %q: %w", cs[i].Key, err)
		}
	}
	return nil
}

// last is the revision that the entry's commit made; zero of an entry without observations.
func (e *Entry) last() stream.Revision {
	if len(e.Offsets) == 0 {
		return stream.Revision{}
	}
	return stream.Revision{Generation: e.TopicGeneration, Offset: e.Offsets[len(e.Offsets)-1]}
}

// unpersisted lists what the ledger says was published and no row knows: commits of an owner that publishes before it
// persists, whichever mode goes on now (H9). The frontier has not passed them, also where the log has lost one, so each is read again or
// declared lost. Each must stand over the one before, and the first over the row; otherwise their state cannot be rebuilt.
func (r Recovery) unpersisted(ctx context.Context, t *Tenure, led *ledgerView) ([]Rebuild, error) {
	var all []Rebuild
	for page := range slices.Chunk(slices.Sorted(maps.Keys(led.above)), recoveryPage) {
		rows, err := r.Store.Restore(ctx, t, page)
		if err != nil {
			return nil, fmt.Errorf("read %d keys that the ledger names: %w", len(page), err)
		}
		for _, row := range rows {
			at := row.Checkpoint.Revision
			for _, e := range led.above[row.Key] {
				if last := e.Entry.last(); at.Covers(last) || row.Discarded.Covers(last) {
					continue
				}
				if e.Entry.Base != at {
					return nil, &DivergedError{Partition: t.Partition, Key: row.Key, Stored: at, Ledger: e.Entry.last()}
				}
				at = e.Entry.last()
				all = append(all, e)
			}
		}
	}
	return all, nil
}

// FinishKey finishes the prepared commit that stands in one key's row and is not this tenure's own. Run has judged every such row:
// what it could not finish is certainly unpublished, and within a tenure only this process can have published it since. So
// it is published, then promoted until that is known: after the publication an error is never returned while the tenure holds, for
// the next try would publish twice. A run of several that no retry can publish is taken out of its row instead, so that its observations can be
// decided in smaller runs.
func (r Recovery) FinishKey(ctx context.Context, t *Tenure, key stream.Key) error {
	rows, err := r.Store.Restore(ctx, t, []stream.Key{key})
	if err != nil {
		return fmt.Errorf("read the prepared commit of key %q: %w", key, err)
	}
	c := rows[0].Prepared
	if c == nil {
		return nil
	}
	outcomes, err := r.submitAll(ctx, []Commit{*c})
	if err != nil {
		return err
	}
	if err := outcomes[0].Err; err != nil {
		if narrows(c, err) {
			return r.unprepare(ctx, c)
		}
		return fmt.Errorf("publish the prepared commit of key %q: %w", key, err)
	}
	for attempt := 1; ; attempt++ {
		err := r.promote(ctx, []Commit{*c})
		if err == nil {
			return nil
		}
		if class := ClassOf(err); class == Fenced || class == Canceled {
			return err
		}
		if err := r.Backoff(ctx, attempt); err != nil {
			return err
		}
	}
}

// narrows reports whether a prepared commit that was not published is to be taken out of its row: one of several observations of which no retry can
// publish all, so that the one that stops it must be found.
func narrows(c *Commit, err error) bool {
	class := ClassOf(err)
	return len(c.Earlier) > 0 && (class == Permanent || class == Poison)
}

func (r Recovery) unprepare(ctx context.Context, c *Commit) error {
	err := r.Store.Unprepare(ctx, Promotion{Tenure: c.Tenure, Key: c.Key, Revision: c.Revision, ID: c.ID})
	if err != nil {
		return fmt.Errorf("take out the prepared commit of key %q: %w", c.Key, err)
	}
	return nil
}
