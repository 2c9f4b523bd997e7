package partition

import (
	"time"

	"milepost/internal/commit"
)

// promotion is a key whose published commit is to be promoted at a time, unless a later prepare has folded it in.
type promotion struct {
	key *key
	rev int64
	due time.Time
}

func (m *Machine) promoteLater(k *key, after time.Duration) {
	m.promotions.push(promotion{key: k, rev: k.published.promotion.Revision.Offset, due: m.now.Add(after)})
}

// promoteDue promotes published commits that no later commit of their key has folded in for a while.
func (m *Machine) promoteDue() {
	var batch []commit.Promotion
	for n := m.promotions.len(); n > 0; n-- {
		if m.promotions.at(0).due.After(m.now) {
			break
		}
		p, _ := m.promotions.pop()
		switch {
		case !p.stands():
		case p.key.phase == committing || p.key.job != nil && p.key.job.composed:
			// Its next prepare folds it in; looked at again later, should that one fail for good.
			m.promoteLater(p.key, m.cfg.PromoteAfter)
		default:
			batch = append(batch, p.key.promote())
		}
	}
	m.emitPromotions(batch)
}

// stands reports whether the promotion is still to be made.
func (p promotion) stands() bool {
	return p.key.published != nil && p.key.published.promotion.Revision.Offset == p.rev && !p.key.published.promoting
}

func (k *key) promote() commit.Promotion {
	k.published.promoting = true
	return k.published.promotion
}

// promoteAll promotes whatever is published and not promoted: before the end of a drain.
func (m *Machine) promoteAll() {
	var batch []commit.Promotion
	for p, ok := m.promotions.pop(); ok; p, ok = m.promotions.pop() {
		if p.stands() {
			batch = append(batch, p.key.promote())
		}
	}
	m.emitPromotions(batch)
}

func (m *Machine) emitPromotions(batch []commit.Promotion) {
	for len(batch) > 0 {
		n := min(len(batch), m.cfg.RestoreBatch)
		m.promoting++
		m.emit(Promote{Promotions: batch[:n:n]})
		batch = batch[n:]
	}
}

// promoted lets go of what is promoted; what failed is tried again later.
func (m *Machine) promoted(in Promoted) {
	m.promoting--
	warned := false
	for i, p := range in.Promotions {
		err := in.Err
		if err == nil && i < len(in.Errs) {
			err = in.Errs[i]
		}
		if err != nil && m.fenced(err) {
			return
		}
		k := m.keys[p.Key]
		if k == nil || k.published == nil || k.published.promotion.ID != p.ID {
			continue
		}
		k.published.promoting = false
		m.touch(k)
		if err != nil {
			if !warned {
				m.warn("promotion failed", k, err)
				warned = true
			}
			m.promoteHeld = true
			m.promoteLater(k, m.cfg.PromoteAfter)
			continue
		}
		m.stats.Promoted++
		k.published = nil
		m.unpromoted--
		m.rehold(k)
		if k.phase == onErrand && k.errand.promoting {
			k.errand.promoting = false
			m.wake(k)
		}
		m.rest(k)
	}
}
