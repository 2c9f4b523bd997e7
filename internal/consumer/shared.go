package consumer

import (
	"context"
	"time"

	"milepost/internal/commit"
	"milepost/internal/partition"
)

// promotion, persisting, frontierSave and quarantining are effects that share a statement with those of other partitions.
type promotion struct {
	mail  *mailbox
	items []commit.Promotion
}

type persisting struct {
	mail  *mailbox
	items []commit.Persist
}

type frontierSave struct {
	w     *worker
	write commit.FrontierWrite
	began time.Time
}

type quarantining struct {
	mail *mailbox
	rows []commit.Quarantined
}

// promote runs many partitions' promotions in one statement and answers each with its own verdicts.
func (c *Consumer) promote(work context.Context, batch []promotion) {
	ctx, cancel := context.WithTimeout(work, c.cfg.RequestTimeout)
	defer cancel()
	var all []commit.Promotion
	for _, p := range batch {
		all = append(all, p.items...)
	}
	errs, err := c.deps.Store.Promote(ctx, all)
	for _, p := range batch {
		in := partition.Promoted{Promotions: p.items, Err: err}
		if err == nil {
			in.Errs, errs = errs[:len(p.items):len(p.items)], errs[len(p.items):]
		}
		p.mail.post(in)
	}
}

// persist makes many partitions' published checkpoints durable in one statement and answers each with its own verdicts.
func (c *Consumer) persist(work context.Context, batch []persisting) {
	ctx, cancel := context.WithTimeout(work, c.cfg.RequestTimeout)
	defer cancel()
	var all []commit.Persist
	for _, p := range batch {
		all = append(all, p.items...)
	}
	errs, err := c.deps.Store.Persist(ctx, all)
	for _, p := range batch {
		in := partition.Persisted{Persists: p.items, Err: err}
		if err == nil {
			in.Errs, errs = errs[:len(p.items):len(p.items)], errs[len(p.items):]
		}
		p.mail.post(in)
	}
}

// saveFrontiers makes many partitions' frontiers durable in one statement. Only then may the group's offset follow (P40).
func (c *Consumer) saveFrontiers(work context.Context, batch []frontierSave) {
	ctx, cancel := context.WithTimeout(work, c.cfg.RequestTimeout)
	defer cancel()
	writes := make([]commit.FrontierWrite, len(batch))
	for i, f := range batch {
		writes[i] = f.write
	}
	errs, err := c.deps.Store.SaveFrontier(ctx, writes)
	for i, f := range batch {
		verdict := err
		if err == nil {
			verdict = errs[i]
		}
		if verdict == nil {
			raise(&f.w.tenure.SavedFrontier, f.write.Frontier.Next.Offset)
			raise(&f.w.floor, f.write.LedgerFloor)
			if tell := c.deps.Observer.Frontier; tell != nil {
				tell(f.write.Tenure.Partition, f.write.Frontier, time.Since(f.began))
			}
		}
		f.w.mail.post(partition.FrontierSaved{Write: f.write, Err: verdict})
	}
}

// raise keeps the higher value. One batcher runs at a time, so there is one writer.
func raise(a interface {
	Load() int64
	Store(value int64)
}, v int64,
) {
	if v > a.Load() {
		a.Store(v)
	}
}

// quarantine writes many partitions' observations in one statement and answers each with its own verdicts.
func (c *Consumer) quarantine(work context.Context, batch []quarantining) {
	ctx, cancel := context.WithTimeout(work, c.cfg.RequestTimeout)
	defer cancel()
	var all []commit.Quarantined
	for _, q := range batch {
		all = append(all, q.rows...)
	}
	errs, err := c.deps.Store.Quarantine(ctx, all)
	for _, q := range batch {
		in := partition.QuarantineSaved{Rows: q.rows, Err: err}
		if err == nil {
			in.Errs, errs = errs[:len(q.rows):len(q.rows)], errs[len(q.rows):]
		}
		q.mail.post(in)
	}
}
