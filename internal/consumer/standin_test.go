package consumer

import (
	"slices"
	"time"

	"milepost/internal/commit"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

type simple struct {
	cfg      partition.Config
	w        partition.Workload
	t        *commit.Tenure
	queue    map[stream.Key][]stream.Record
	busy     map[stream.Key]bool
	cp       map[stream.Key]*commit.Checkpoint
	fly      map[stream.Key]commit.Commit
	prom     map[stream.Key]commit.Promotion
	open     map[int64]bool
	next     int64
	saved    int64
	pos      int64
	draining bool
	saving   bool
	promoted bool
	final    bool
}

func standIn(cfg partition.Config, w partition.Workload, s partition.Start, _ time.Time) machine {
	m := &simple{cfg: cfg, w: w, t: s.Tenure, next: s.Frontier.Next.Offset, saved: s.Frontier.Next.Offset, pos: s.LedgerFloor,
		queue: map[stream.Key][]stream.Record{}, busy: map[stream.Key]bool{}, cp: map[stream.Key]*commit.Checkpoint{},
		fly: map[stream.Key]commit.Commit{}, prom: map[stream.Key]commit.Promotion{}, open: map[int64]bool{}}
	return m
}
func (m *simple) View() partition.View { return partition.View{} }
func (m *simple) frontier() int64 {
	f := m.next
	for o := range m.open {
		f = min(f, o)
	}
	return f
}
func (m *simple) rev(o int64) stream.Revision {
	return stream.Revision{Generation: m.t.TopicGeneration, Offset: o}
}
func (m *simple) kick(k stream.Key) (out []partition.Effect) {
	if m.busy[k] || m.draining || len(m.queue[k]) == 0 {
		return nil
	}
	if m.cp[k] == nil {
		m.busy[k] = true
		return []partition.Effect{partition.Restore{Keys: []stream.Key{k}}}
	}
	r := m.queue[k][0]
	if m.cp[k].Revision.Covers(m.rev(r.Offset)) {
		m.queue[k] = m.queue[k][1:]
		delete(m.open, r.Offset)
		return m.kick(k)
	}
	m.busy[k] = true
	var id partition.JobID
	copy(id[:], string(k)+string(rune(r.Offset)))
	return []partition.Effect{partition.Dispatch{Job: id, Key: k, Revision: m.rev(r.Offset), Request: r.Value}}
}
func (m *simple) save() []partition.Effect {
	if m.saving || (m.frontier() == m.saved && !m.draining) {
		return nil
	}
	m.saving = true
	return []partition.Effect{partition.SaveFrontier{Write: commit.FrontierWrite{Tenure: m.t, Frontier: stream.Frontier{Next: m.rev(m.frontier()), LeaderEpoch: -1}, LedgerFloor: 0}}}
}
func (m *simple) finish() []partition.Effect {
	if !m.draining || len(m.fly) > 0 || m.saving {
		return nil
	}
	if len(m.prom) > 0 {
		var ps []commit.Promotion
		for _, p := range m.prom {
			ps = append(ps, p)
		}
		m.prom = map[stream.Key]commit.Promotion{}
		m.promoted = true
		m.saving = true
		return []partition.Effect{partition.Promote{Promotions: ps}}
	}
	if !m.final {
		m.final = true
		return m.save()
	}
	return []partition.Effect{partition.Drained{Report: partition.Report{Frontier: stream.Frontier{Next: m.rev(m.frontier())}}}}
}
func (m *simple) Step(now time.Time, in partition.Input) (out []partition.Effect) {
	switch in := in.(type) {
	case partition.Arrived:
		for _, r := range in.Records {
			if m.draining {
				continue
			}
			k := stream.Key(r.Key)
			m.queue[k] = append(m.queue[k], r)
			m.open[r.Offset] = true
			m.next = r.Offset + 1
			out = append(out, m.kick(k)...)
		}
	case partition.Restored:
		for i, k := range in.Keys {
			m.busy[k] = false
			if in.Err == nil {
				cp := in.Rows[i].Checkpoint
				m.cp[k] = &cp
				if p := in.Rows[i].Prepared; p != nil {
					m.cp[k] = &p.Next
				}
			}
			out = append(out, m.kick(k)...)
		}
	case partition.Result:
		if m.draining {
			break
		}
		r := m.queue[in.Key][0]
		o, _ := m.w.Decode(&r)
		o.Identity = stream.Identity{Partition: m.t.Partition, Revision: m.rev(r.Offset)}
		plan, _ := m.w.Plan(partition.KeyState{Checkpoint: *m.cp[in.Key]}, o, in.Decision)
		c := commit.NewCommit(m.t, in.Key, m.cp[in.Key].Revision, plan)
		m.fly[in.Key] = c
		out = append(out, partition.Commit{Commit: c})
	case partition.Committed:
		c := m.fly[in.Key]
		delete(m.fly, in.Key)
		m.busy[in.Key] = false
		if in.Err != nil {
			if commit.ClassOf(in.Err) == commit.Fenced {
				return []partition.Effect{partition.Stop{Cause: in.Err}}
			}
			m.fly[in.Key] = c
			m.busy[in.Key] = true
			if !m.draining {
				out = append(out, partition.Commit{Commit: c})
			} else {
				delete(m.fly, in.Key)
			}
		} else {
			m.cp[in.Key] = &c.Next
			m.queue[in.Key] = slices.Clone(m.queue[in.Key][1:])
			delete(m.open, c.Revision.Offset)
			m.prom[in.Key] = commit.Promotion{Tenure: m.t, Key: in.Key, Revision: c.Revision, ID: c.ID}
			out = append(out, m.kick(in.Key)...)
		}
	case partition.Tick:
		out = append(out, m.save()...)
	case partition.Promoted:
		m.saving = false
	case partition.FrontierSaved:
		m.saving = false
		if in.Err == nil {
			m.saved = in.Write.Frontier.Next.Offset
		} else if commit.ClassOf(in.Err) == commit.Fenced {
			return []partition.Effect{partition.Stop{Cause: in.Err}}
		}
	case partition.Drain:
		m.draining = true
	}
	return append(out, m.finish()...)
}
