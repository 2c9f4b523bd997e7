package solve

import (
	"hash/fnv"
	"time"

	"milepost/internal/partition"
	"milepost/internal/stream"
)

// routes says by which partition of a region's requests a job goes, and learns from replies who reads which. It is its Remote's,
// under its mutex.
type routes struct {
	suspicion time.Duration // how long what is silent gets no first attempts
	vias      []via
	replicas  map[string]*seen
}

// via is a partition of the requests.
type via struct {
	reader string // the replica that answered last by it; empty: none yet
	seen
}

// seen is what is known of a partition or a replica.
type seen struct {
	answered time.Time // last
	silent   time.Time // since when it is suspected; zero: it is not
}

// sent is where a job went last.
type sent struct {
	via int32
	at  time.Time
}

func newRoutes(partitions int32, suspicion time.Duration) *routes {
	return &routes{suspicion: suspicion, vias: make([]via, partitions), replicas: map[string]*seen{}}
}

// widen takes in partitions that were added.
func (r *routes) widen(partitions int32) {
	for int32(len(r.vias)) < partitions {
		r.vias = append(r.vias, via{})
	}
}

// answered notes a reply.
func (r *routes) answered(by int32, replica string, now time.Time) {
	if by < 0 || int(by) >= len(r.vias) {
		return
	}
	if r.replicas[replica] == nil && len(r.replicas) > 4*len(r.vias)+64 {
		r.forget()
	}
	r.vias[by] = via{replica, seen{answered: now}}
	r.replicas[replica] = &seen{answered: now}
}

// forget lets go of replicas that read nothing any more: they come and go, and a name is for one start.
func (r *routes) forget() {
	reading := map[string]bool{}
	for i := range r.vias {
		reading[r.vias[i].reader] = true
	}
	for name := range r.replicas {
		if !reading[name] {
			delete(r.replicas, name)
		}
	}
}

// timedOut notes that a job was not answered in time. What has answered nothing since is suspected: the partition, for it may have
// another reader by now, and the replica that is thought to read it.
func (r *routes) timedOut(s sent, now time.Time) {
	r.vias[s.via].suspect(s.at, now)
	if known := r.replicas[r.vias[s.via].reader]; known != nil {
		known.suspect(s.at, now)
	}
}

func (s *seen) suspect(since, now time.Time) {
	if s.answered.Before(since) && s.silent.IsZero() {
		s.silent = now
	}
}

func (s *seen) suspected(now time.Time, suspicion time.Duration) bool {
	return !s.silent.IsZero() && now.Sub(s.silent) < suspicion
}

func (r *routes) suspected(by int32, now time.Time) bool {
	if r.vias[by].suspected(now, r.suspicion) {
		return true
	}
	s := r.replicas[r.vias[by].reader]
	return s != nil && s.suspected(now, r.suspicion)
}

// first gives the partition of a job's first attempt: its key's, unless that is suspected.
func (r *routes) first(key stream.Key, now time.Time) int32 {
	home := int32(hash(key) % uint64(len(r.vias)))
	if !r.suspected(home, now) {
		return home
	}
	return r.other(key, sent{via: home, at: now}, 0, now)
}

// other gives another partition than the last attempt's: one that was answered since then, else one that was answered lately, of
// another replica than the one tried before the same one's; else one that nobody has answered by, else one of a replica that is
// suspected, perhaps because it was thought to read what another one reads by now; else the next.
func (r *routes) other(key stream.Key, last sent, attempt int, now time.Time) int32 {
	tried := r.vias[last.via].reader
	var choice [6][]int32 // the best first
	for by := range int32(len(r.vias)) {
		v := &r.vias[by]
		rank := 4
		switch {
		case by == last.via || v.suspected(now, r.suspicion):
			continue
		case r.suspected(by, now):
			rank = 5
		case v.answered.After(last.at):
			rank = 0
		case v.reader != "" && now.Sub(v.answered) < r.suspicion:
			rank = 2
		}
		if rank < 4 && v.reader == tried {
			rank++
		}
		choice[rank] = append(choice[rank], by)
	}
	n := hash(key) + uint64(max(attempt, 0))
	for _, of := range choice {
		if len(of) > 0 {
			return of[n%uint64(len(of))]
		}
	}
	return (last.via + 1) % int32(len(r.vias))
}

func hash(key stream.Key) uint64 {
	h := fnv.New64a()
	h.Write([]byte(key))
	return h.Sum64()
}

// outstanding are a partition's jobs that are out.
type outstanding struct {
	jobs map[partition.JobID]sent
}

// maxOutstanding bounds what is remembered of a partition's jobs; jobs that were given up stay until then.
const maxOutstanding = 1 << 15

func (o *outstanding) note(id partition.JobID, s sent) {
	if len(o.jobs) >= maxOutstanding {
		for old, was := range o.jobs {
			if s.at.Sub(was.at) > time.Minute {
				delete(o.jobs, old)
			}
		}
		if len(o.jobs) >= maxOutstanding {
			clear(o.jobs) // only where the next attempt goes is lost
		}
	}
	o.jobs[id] = s
}
