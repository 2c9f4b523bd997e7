package partition

import (
	"bytes"
	"errors"
	"slices"
)

// errOtherContent is met when two results of one job differ: a solver is not what it should be.
var errOtherContent = errors.New("two results of one job have different content")

// judgement is what becomes of a result.
type judgement uint8

const (
	accepted     judgement = iota // it is the active job's
	missed                        // a trip miss of the active job's request without the trip
	early                         // its job may still go out
	rejected                      // for the reason given
	contradictor                  // same job as a decided one, other content: put aside with a warning, never used
)

// result judges what a solver, or whoever pretends to be one, says (A10).
func (m *Machine) result(in Result) {
	if m.draining {
		return
	}
	k := m.keys[in.Key]
	if k == nil {
		m.reject(UnknownKey)
		return
	}
	if j, why := m.judge(k, &in); j != early {
		m.follow(k, &in, j, why)
		return
	}
	for i := range k.parked {
		if k.parked[i].Job == in.Job && k.parked[i].Revision == in.Revision {
			if same(k.parked[i].Decision, in.Decision) {
				m.reject(Repeated)
			} else {
				m.contradicts(k)
			}
			return
		}
	}
	if len(k.parked) >= m.cfg.ParkedResults {
		m.reject(NoRoom)
		return
	}
	m.touch(k)
	k.parked = append(k.parked, in)
	m.stats.Parked++
}

// judgeParked judges a key's parked results anew, oldest first, right after a job of it went out.
func (m *Machine) judgeParked(k *key) {
	parked := k.parked
	k.parked = nil
	for i := range parked {
		if j, why := m.judge(k, &parked[i]); j == early {
			k.parked = append(k.parked, parked[i])
		} else {
			m.follow(k, &parked[i], j, why)
		}
	}
}

func (m *Machine) follow(k *key, in *Result, j judgement, why string) {
	switch j {
	case accepted:
		m.answered(k, in)
	case missed:
		m.tripMiss(k)
	case rejected:
		m.reject(why)
	case contradictor:
		m.contradicts(k)
	case early:
	}
}

// judge says what a result is to its key as it stands. It changes nothing.
func (m *Machine) judge(k *key, in *Result) (judgement, string) {
	head := m.revision(-1)
	if k.head != nil {
		head = m.revision(k.head.record.Offset)
	}
	ofJob := k.job != nil && in.Revision == head && in.Job == k.job.id && in.Job != JobID{}
	active := ofJob && k.phase == solving
	valid := in.Err == nil && in.Decision.Kind >= Solved && in.Decision.Kind <= Reset && (!active || len(in.Decision.More) < k.job.run)
	switch {
	case in.TripMiss:
		if active && k.job.cached {
			return missed, ""
		}
		return rejected, StrayMiss
	case active && (valid || in.Err != nil):
		return accepted, ""
	case in.Err != nil:
		return rejected, Obsolete
	case !valid:
		return rejected, Malformed
	case in.Revision.Generation != head.Generation:
		return rejected, OtherGeneration
	case k.quarantined:
		return rejected, OfQuarantined
	case k.covers(in.Revision) || k.head != nil && in.Revision.Compare(head) < 0:
		return rejected, Obsolete
	case ofJob && k.job.decided:
		// After its commit began a result proves nothing, least of all that the commit is durable.
		if same(k.job.decision, in.Decision) {
			return rejected, Repeated
		}
		return contradictor, ""
	case in.Revision == head && (k.phase == solving || k.job != nil && k.job.composed):
		return rejected, OtherBase
	}
	return early, ""
}

func same(a, b Decision) bool {
	return a.Kind == b.Kind && a.Reason == b.Reason && bytes.Equal(a.Answer, b.Answer) && slices.EqualFunc(a.More, b.More, bytes.Equal)
}

// contradicts counts a result that says otherwise than an earlier one of its job, and tells of it once a job: a
// forger shall not fill the log.
func (m *Machine) contradicts(k *key) {
	m.stats.QuarantinedResults++
	if k.job == nil || k.job.differs {
		return
	}
	k.job.differs = true
	m.warn("result put aside", k, errOtherContent)
}
