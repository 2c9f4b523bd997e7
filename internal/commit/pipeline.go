package commit

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Outcome is the end of a submitted commit.
type Outcome struct {
	Position int64 // of its ledger entry; -1: published earlier, where is not known
	Err      error // nil: published. Transient promises that it is certainly not published
}

// PipelineConfig bounds a pipeline.
type PipelineConfig struct {
	BatchRecords int   // commits a prepare and a transaction
	BatchBytes   int64 // the same in bytes; a single larger commit goes alone
	// LaneFill is how many commits must wait before a lane starts while another is at work: at low load one lane at
	// a time takes all that gathered, so that a commit does not cost a transaction of its own.
	LaneFill int
}

// DefaultPipelineConfig gives the defaults.
func DefaultPipelineConfig() PipelineConfig {
	return PipelineConfig{BatchRecords: 500, BatchBytes: 4 << 20, LaneFill: 64}
}

// Validate checks the bounds.
func (c PipelineConfig) Validate() error {
	if c.BatchRecords < 1 || c.BatchBytes < 1 || c.LaneFill < 1 {
		return errors.New("commit: batch records, batch bytes and lane fill must be at least 1")
	}
	return nil
}

// Pipeline runs the commit stages for all partitions of a process (A18): prepare gathers while one batch is written, the
// lanes take turns to publish. It owns its goroutines; Run returns when ctx has ended and every one of them too.
type Pipeline struct {
	cfg   PipelineConfig
	store Store
	pub   Publisher

	mu       sync.Mutex // guards all below; held for list operations only, never over a call to store, pub or done
	prepare  []submission
	publish  []submission
	inside   map[*Tenure]int
	closed   bool
	prepared chan struct{} // capacity 1: something waits for prepare
	ready    chan struct{} // capacity 1: something waits for a lane
	changed  chan struct{} // closed and replaced whenever a commit leaves
}

// submission is one commit in the pipeline.
type submission struct {
	commit Commit
	done   func(Outcome)
}

// NewPipeline makes a pipeline that is not running yet; commits may be handed in before it does.
func NewPipeline(cfg PipelineConfig, s Store, p Publisher) *Pipeline {
	return &Pipeline{
		cfg: cfg, store: s, pub: p, inside: map[*Tenure]int{},
		prepared: make(chan struct{}, 1), ready: make(chan struct{}, 1), changed: make(chan struct{}),
	}
}

// Run works until ctx ends; what is then still inside ends with ctx's error, its fate unknown.
func (p *Pipeline) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { p.runPrepare(ctx) })
	wg.Go(func() { p.runPublish(ctx) })
	wg.Wait()

	p.mu.Lock()
	p.closed = true
	rest := slices.Concat(p.prepare, p.publish)
	p.prepare, p.publish = nil, nil
	p.mu.Unlock()
	for _, s := range rest {
		p.leave(s, Outcome{Err: context.Cause(ctx)})
	}
	return nil
}

// Submit hands in a commit. It never blocks; done is called exactly once, on a goroutine of the pipeline (or on the
// caller's when the pipeline has ended), and must not block. A key has at most one commit in the pipeline; dead letters of records
// without a key (NoRow, Key "") have no order among them, and any number of them may be in it at once.
func (p *Pipeline) Submit(c Commit, done func(Outcome)) {
	s := submission{commit: c, done: done}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		done(Outcome{Err: context.Canceled})
		return
	}
	p.inside[c.Tenure]++
	unprepared := c.NoRow || c.Deferred
	if unprepared {
		p.publish = append(p.publish, s)
	} else {
		p.prepare = append(p.prepare, s)
	}
	p.mu.Unlock()
	if unprepared {
		signal(p.ready)
	} else {
		signal(p.prepared)
	}
}

// Settle waits until no commit of the tenures is in the pipeline: none is in a transaction that is open or unknown.
// The tenures must have been lost or drained before, so that none is handed in any more.
func (p *Pipeline) Settle(ctx context.Context, tenures []*Tenure) error {
	for {
		p.mu.Lock()
		busy, changed := false, p.changed
		for _, t := range tenures {
			busy = busy || p.inside[t] > 0
		}
		p.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Depth is how many commits wait for prepare and for a lane, for metrics.
func (p *Pipeline) Depth() (prepare, publish int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.prepare), len(p.publish)
}

// runPrepare writes what has gathered, a batch at a time.
func (p *Pipeline) runPrepare(ctx context.Context) {
	for {
		batch := p.take(&p.prepare)
		if len(batch) == 0 {
			select {
			case <-p.prepared:
				continue
			case <-ctx.Done():
				return
			}
		}
		p.prepareBatch(ctx, batch)
	}
}

func (p *Pipeline) prepareBatch(ctx context.Context, batch []submission) {
	batch = p.dropLost(batch)
	if len(batch) == 0 {
		return
	}
	verdicts, err := p.store.Prepare(ctx, commits(batch))
	if err != nil {
		// Nothing was published: the machine sends the same bytes again, and that statement's verdicts decide.
		p.failAll(batch, err)
		return
	}
	next := batch[:0:0]
	for i, s := range batch {
		switch v := verdicts[i]; {
		case v.Err != nil:
			p.leave(s, Outcome{Err: v.Err})
		case v.Current:
			p.leave(s, Outcome{Position: -1})
		default:
			next = append(next, s)
		}
	}
	if len(next) == 0 {
		return
	}
	p.mu.Lock()
	p.publish = append(p.publish, next...)
	p.mu.Unlock()
	signal(p.ready)
}

// runPublish hands batches to idle lanes, the one that has been idle longest first: its last transaction's markers
// are the likeliest to be written.
func (p *Pipeline) runPublish(ctx context.Context) {
	lanes := p.pub.Lanes()
	idle := make(chan int, lanes) // capacity: every lane, so that a lane never blocks on coming back
	for i := range lanes {
		idle <- i
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		p.mu.Lock()
		waiting := len(p.publish)
		p.mu.Unlock()
		free := len(idle)
		if waiting == 0 || free == 0 || (free < lanes && waiting < p.cfg.LaneFill) {
			select {
			case <-p.ready: // a commit came, or a lane came back
				continue
			case <-ctx.Done():
				return
			}
		}
		lane, batch := <-idle, p.take(&p.publish)
		wg.Go(func() {
			p.publishBatch(ctx, lane, batch)
			idle <- lane
			signal(p.ready)
		})
	}
}

func (p *Pipeline) publishBatch(ctx context.Context, lane int, batch []submission) {
	batch = p.dropLost(batch)
	if len(batch) == 0 {
		return
	}
	published, err := p.pub.Publish(ctx, lane, commits(batch))
	if err != nil {
		p.failAll(batch, err)
		return
	}
	for i, s := range batch {
		if err := published.Failed[i]; err != nil {
			p.leave(s, Outcome{Err: err})
			continue
		}
		p.leave(s, Outcome{Position: published.Positions[s.commit.Tenure.Partition]})
	}
}

// take removes a batch from the front of a queue.
func (p *Pipeline) take(queue *[]submission) []submission {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, size := 0, int64(0)
	for n < len(*queue) && n < p.cfg.BatchRecords {
		size += (*queue)[n].commit.Size()
		if n > 0 && size > p.cfg.BatchBytes {
			break
		}
		n++
	}
	batch := append([]submission(nil), (*queue)[:n]...)
	rest := copy(*queue, (*queue)[n:])
	clear((*queue)[rest:])
	*queue = (*queue)[:rest]
	return batch
}

// dropLost ends the commits of tenures that are over; they were not published in this try.
func (p *Pipeline) dropLost(batch []submission) []submission {
	kept := batch[:0:0]
	for _, s := range batch {
		t := s.commit.Tenure
		if err := t.Err(); err != nil {
			p.leave(s, Outcome{Err: &FencedError{Partition: t.Partition, Held: t.Epoch, Reason: err.Error()}})
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

func (p *Pipeline) failAll(batch []submission, err error) {
	for _, s := range batch {
		p.leave(s, Outcome{Err: err})
	}
}

// leave ends a commit's stay. done runs before Settle is told, so that who has settled has also been answered.
func (p *Pipeline) leave(s submission, o Outcome) {
	s.done(o)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inside[s.commit.Tenure]--; p.inside[s.commit.Tenure] == 0 {
		delete(p.inside, s.commit.Tenure)
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

func commits(batch []submission) []Commit {
	cs := make([]Commit, len(batch))
	for i := range batch {
		cs[i] = batch[i].commit
	}
	return cs
}

// signal wakes the one loop that listens; a wake-up that is already pending serves for both.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
