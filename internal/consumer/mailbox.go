package consumer

import (
	"sync"

	"milepost/internal/partition"
)

// mailbox carries inputs to a worker. Posting never blocks and never fails, so no completion can be held up by a worker that
// is busy, ending, or gone; what bounds it is that every input but records answers an effect, and records are bounded by
// pausing the fetch.
type mailbox struct {
	mu    sync.Mutex
	queue []partition.Input
	spare []partition.Input // the slice that the last take gave back
	ready chan struct{}     // capacity 1: something is in the queue
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

func (m *mailbox) post(in partition.Input) {
	m.mu.Lock()
	m.queue = append(m.queue, in)
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// take empties the mailbox. The slice is valid until the next take.
func (m *mailbox) take() []partition.Input {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.queue
	clear(m.spare)
	m.queue, m.spare = m.spare[:0], taken
	return taken
}
