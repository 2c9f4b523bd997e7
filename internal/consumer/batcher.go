package consumer

import "sync"

// batcher gathers items while earlier ones are being worked on: group commit without timers. At most width runs at once, each
// with at most limit items, in the order they came.
type batcher[T any] struct {
	width, limit int
	run          func([]T)

	mu      sync.Mutex
	queue   []T
	running int
	wg      sync.WaitGroup
}

func newBatcher[T any](width, limit int, run func([]T)) *batcher[T] {
	return &batcher[T]{width: width, limit: limit, run: run}
}

// add hands in an item; it never blocks.
func (b *batcher[T]) add(item T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, item)
	if b.running < b.width {
		b.running++
		b.wg.Go(b.work)
	}
}

func (b *batcher[T]) work() {
	for {
		b.mu.Lock()
		n := min(len(b.queue), b.limit)
		if n == 0 {
			b.running--
			b.mu.Unlock()
			return
		}
		batch := append([]T(nil), b.queue[:n]...)
		rest := copy(b.queue, b.queue[n:])
		clear(b.queue[rest:])
		b.queue = b.queue[:rest]
		b.mu.Unlock()
		b.run(batch)
	}
}

// wait returns when nothing is queued or running. Nothing may be added meanwhile.
func (b *batcher[T]) wait() { b.wg.Wait() }
