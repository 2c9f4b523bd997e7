package fleet

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"sync"

	"milepost/internal/stream"
)

// tripOverhead is what a kept trip costs beside its key and state.
const tripOverhead = 256

// Trips are the matcher states of vehicles that this process answered last, so that a worker need not send them again. Each is
// taken on use and put back as the answer left it; what revision and digest do not vouch for is as good as absent. Within their
// bound in bytes the least recently used go first. A nil one keeps nothing.
type Trips struct {
	bound int64

	mu    sync.Mutex
	byKey map[tripKey]*list.Element
	order list.List // of *trip, the most recent first
	stats TripStats
}

// TripStats count look-ups, and what is kept.
type TripStats struct {
	Hits, Misses, Mismatches, Evicted int64
	Trips                             int
	Bytes                             int64
}

type tripKey struct {
	topic string
	key   stream.Key
}

type trip struct {
	key      tripKey
	revision stream.Revision // of the observation that made the state
	digest   [sha256.Size]byte
	state    []byte
}

func (t *trip) size() int64 {
	return int64(len(t.state)+len(t.key.key)+len(t.key.topic)) + tripOverhead
}

// NewTrips keeps up to so many bytes.
func NewTrips(bound int64) *Trips { return &Trips{bound: bound, byKey: map[tripKey]*list.Element{}} }

// take gives the state that a request without it stands on, nil where it is not here, and lets go of it.
func (t *Trips) take(r *Request) []byte {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.byKey[keyOf(r)]
	if !ok {
		t.stats.Misses++
		return nil
	}
	found := t.remove(e)
	if found.revision != r.Base || !bytes.Equal(found.digest[:], r.StateDigest) {
		t.stats.Mismatches++
		return nil
	}
	t.stats.Hits++
	return found.state
}

// put keeps the state that the answers about so many of a request's observations leave.
func (t *Trips) put(r *Request, solved int, state []byte) {
	if t == nil {
		return
	}
	put := &trip{key: keyOf(r), revision: r.last(solved), digest: sha256.Sum256(state), state: bytes.Clone(state)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := t.byKey[put.key]; ok {
		t.remove(e)
	}
	if len(state) == 0 || put.size() > t.bound {
		return
	}
	t.byKey[put.key] = t.order.PushFront(put)
	t.stats.Bytes += put.size()
	for t.stats.Bytes > t.bound {
		t.remove(t.order.Back())
		t.stats.Evicted++
	}
}

// remove lets go of an entry; the caller holds mu.
func (t *Trips) remove(e *list.Element) *trip {
	gone, _ := t.order.Remove(e).(*trip)
	delete(t.byKey, gone.key)
	t.stats.Bytes -= gone.size()
	return gone
}

// Stats gives the counts so far.
func (t *Trips) Stats() TripStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	s.Trips = len(t.byKey)
	return s
}

func keyOf(r *Request) tripKey { return tripKey{r.Identity.Partition.Topic, r.Key} }
