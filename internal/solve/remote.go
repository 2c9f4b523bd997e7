package solve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/commit"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

const (
	// deliveryTimeout is after how long a record that no broker took is given up: its job has been sent again by then.
	deliveryTimeout  = 3 * time.Second
	maxBuffered      = 16384
	maxBufferedBytes = 64 << 20
	// suspicion is how long a replica that left everything unanswered gets no first attempts.
	suspicion   = 10 * time.Second
	lookTimeout = 5 * time.Second
)

// RemoteConfig holds the settings of a worker's side.
type RemoteConfig struct {
	Client   []kgo.Opt
	Raw      string                     // the raw topic
	Requests func(region string) string // the topic of a region's requests
	Replies  string
	Secret   Secret
	Log      *slog.Logger
}

// Remote is the worker's side.
type Remote struct {
	cfg    RemoteConfig
	client *kgo.Client
	admin  *kadm.Client
	ctx    context.Context //nolint:containedctx // of its own goroutines and produces: Run ends it
	stop   context.CancelFunc
	wg     sync.WaitGroup

	sent, unsent, replies, malformed, forged, stray, errs atomic.Int64
	unsentTold                                            atomic.Int64 // when it was last said that requests are not sent, in nanoseconds

	mu      sync.Mutex
	desks   map[int32]*Desk
	regions map[string]*routes // nil value: being looked up
}

// RemoteStats count what went over the topics.
type RemoteStats struct {
	Sent, Unsent                      int64 // requests: given to a broker, or not
	Replies, Malformed, Forged, Stray int64 // Stray: of no partition of ours
	Errors                            int64 // of fetches
}

// NewRemote makes a worker's side; Run lets it work.
func NewRemote(cfg RemoteConfig) (*Remote, error) {
	opts := producing(append([]kgo.Opt{}, cfg.Client...))
	opts = append(opts,
		// Replies older than their partition's desk are nobody's, and so is what a slow reader has missed.
		kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
		kgo.FetchMaxWait(time.Second), kgo.FetchMaxBytes(16<<20),
	)
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("solve: make a client: %w", err)
	}
	r := &Remote{cfg: cfg, client: client, admin: kadm.NewClient(client), desks: map[int32]*Desk{}, regions: map[string]*routes{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r, nil
}

// Run reads replies until ctx ends, then takes down everything. It is called once.
func (r *Remote) Run(ctx context.Context) error {
	defer r.client.Close()
	defer r.wg.Wait()
	defer r.stop()
	said := time.Time{}
	for {
		fetches := r.client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		failed := false
		fetches.EachError(func(_ string, _ int32, err error) {
			failed = true
			r.errs.Add(1)
			if time.Since(said) > 30*time.Second {
				said = time.Now()
				r.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "replies of matchers could not be read; it goes on", slog.Any("err", err))
			}
		})
		fetches.EachRecord(func(k *kgo.Record) { r.take(k) })
		if failed && !pause(ctx, 100*time.Millisecond) {
			return nil
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// take brings one reply to its partition's desk. Whatever it is, it stops nothing (F15).
func (r *Remote) take(k *kgo.Record) {
	r.replies.Add(1)
	if err := r.cfg.Secret.verify(k); err != nil {
		r.forged.Add(1)
		return
	}
	in, err := decodeReply(k.Value)
	if err != nil {
		r.malformed.Add(1)
		return
	}
	if in.job.raw.Topic != r.cfg.Raw || in.job.raw.Number != k.Partition {
		r.stray.Add(1)
		return
	}
	r.mu.Lock()
	d := r.desks[k.Partition]
	if known := r.regions[in.job.region]; known != nil {
		known.answered(in.via, in.replica, time.Now())
	}
	if d != nil {
		delete(d.out.jobs, in.job.id)
	}
	r.mu.Unlock()
	if d == nil {
		r.stray.Add(1)
		return
	}
	d.deliver(in.result())
}

// result is the reply as the machine takes it.
func (r *reply) result() partition.Result {
	out := partition.Result{Job: r.job.id, Key: r.job.key, Revision: r.job.revision, Decision: r.decision, TripMiss: r.missed}
	switch {
	case r.failure == nil:
		out.Replica = strconv.Itoa(int(r.via)) + "/" + r.replica
	case r.failure.permanent:
		out.Err = fmt.Errorf("replica %s: %s: %w", r.replica, r.failure.detail, commit.ErrPermanent)
	default:
		out.Err = fmt.Errorf("replica %s: %s", r.replica, r.failure.detail)
	}
	return out
}

// Stats gives the counts so far.
func (r *Remote) Stats() RemoteStats {
	return RemoteStats{
		Sent: r.sent.Load(), Unsent: r.unsent.Load(), Replies: r.replies.Load(), Malformed: r.malformed.Load(),
		Forged: r.forged.Load(), Stray: r.stray.Load(), Errors: r.errs.Load(),
	}
}

// routesOf gives a region's routes, nil while its topic is being looked up. The caller holds mu.
func (r *Remote) routesOf(region string) *routes {
	known, asked := r.regions[region]
	if !asked && r.ctx.Err() == nil {
		r.regions[region] = nil
		r.wg.Go(func() { r.look(region) })
	}
	return known
}

// look finds out how many partitions a region's requests have, as long as it takes.
func (r *Remote) look(region string) {
	topic := r.cfg.Requests(region)
	for attempt := 0; ; attempt++ {
		ctx, cancel := context.WithTimeout(r.ctx, lookTimeout)
		found, err := r.admin.ListTopics(ctx, topic)
		cancel()
		if err == nil {
			err = found.Error()
		}
		if n := len(found[topic].Partitions); err == nil && n > 0 {
			r.mu.Lock()
			r.regions[region] = newRoutes(int32(n), suspicion)
			r.mu.Unlock()
			return
		}
		r.patience(attempt, "the topic of a region's requests is not found; it is looked for again", topic, err)
		if !pause(r.ctx, backoff(attempt)) {
			return
		}
	}
}

// Expect tells that a region's requests have so many partitions at least. Where more than were known, they are used as soon as the
// client sees them.
func (r *Remote) Expect(region string, partitions int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.regions[region]; known != nil && int32(len(known.vias)) < partitions && r.ctx.Err() == nil {
		r.wg.Go(func() { r.widen(region, partitions) })
	}
}

func (r *Remote) widen(region string, partitions int32) {
	topic := r.cfg.Requests(region)
	for attempt := 0; ; attempt++ {
		r.client.ForceMetadataRefresh()
		ctx, cancel := context.WithTimeout(r.ctx, lookTimeout)
		found, err := r.admin.ListTopics(ctx, topic)
		cancel()
		if n := int32(len(found[topic].Partitions)); err == nil && n >= partitions {
			r.mu.Lock()
			r.regions[region].widen(n)
			r.mu.Unlock()
			return
		}
		r.patience(attempt, "new partitions of a region's requests are not seen yet; they are looked for again", topic, err)
		if !pause(r.ctx, backoff(attempt)) {
			return
		}
	}
}

func (r *Remote) patience(attempt int, message, topic string, err error) {
	if attempt == 1 && r.ctx.Err() == nil {
		//nolint:sloglint // one of three literals of this package
		r.cfg.Log.LogAttrs(r.ctx, slog.LevelWarn, message, slog.String("topic", topic), slog.Any("err", err))
	}
}

func backoff(attempt int) time.Duration {
	return min(100*time.Millisecond<<min(attempt, 5), 2*time.Second)
}

// Attach opens a partition's desk: deliver is called with each reply for it until the desk is closed.
func (r *Remote) Attach(p stream.Partition, deliver func(partition.Result)) *Desk {
	d := &Desk{r: r, raw: p, deliver: deliver, out: outstanding{jobs: map[partition.JobID]sent{}}}
	d.ctx, d.cancel = context.WithCancel(r.ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	former := r.desks[p.Number]
	r.desks[p.Number] = d
	if former != nil {
		former.cancel()
		d.reading.Store(former.reading.Load())
	}
	if r.ctx.Err() == nil && !d.reading.Load() {
		r.wg.Go(d.begin)
	}
	return d
}

// Desk takes one partition's jobs.
type Desk struct {
	r       *Remote
	raw     stream.Partition
	deliver func(partition.Result)
	ctx     context.Context //nolint:containedctx // of the goroutine that begins: Close ends it
	cancel  context.CancelFunc
	reading atomic.Bool
	out     outstanding // under Remote.mu
}

// begin reads the partition's replies from where they end now, so that no reply to a first request is missed.
func (d *Desk) begin() {
	for attempt := 0; ; attempt++ {
		ctx, cancel := context.WithTimeout(d.ctx, lookTimeout)
		ends, err := d.r.admin.ListEndOffsets(ctx, d.r.cfg.Replies)
		cancel()
		if err == nil {
			err = ends.Error()
		}
		if end, ok := ends.Lookup(d.r.cfg.Replies, d.raw.Number); ok && err == nil {
			d.r.mu.Lock()
			defer d.r.mu.Unlock()
			if d.ctx.Err() == nil {
				d.r.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{
					d.r.cfg.Replies: {d.raw.Number: kgo.NewOffset().At(end.Offset)},
				})
				d.reading.Store(true)
			}
			return
		}
		d.r.patience(attempt, "the end of the matchers' replies is not found; it is looked for again", d.r.cfg.Replies, err)
		if !pause(d.ctx, backoff(attempt)) {
			return
		}
	}
}

// Close ends the desk: nothing is delivered any more but what is being delivered.
func (d *Desk) Close() {
	d.r.mu.Lock()
	defer d.r.mu.Unlock()
	d.cancel()
	if d.r.desks[d.raw.Number] != d {
		return
	}
	delete(d.r.desks, d.raw.Number)
	if d.reading.Load() {
		d.r.client.RemoveConsumePartitions(map[string][]int32{d.r.cfg.Replies: {d.raw.Number}})
	}
}

// Submit sends a job; false: not now.
func (d *Desk) Submit(e partition.Dispatch) bool {
	if !d.reading.Load() || d.r.client.BufferedProduceRecords() >= maxBuffered/2 {
		return false
	}
	out := &job{
		id: e.Job, raw: d.raw, revision: e.Revision, key: e.Key, region: e.Region, attempt: e.Attempt, request: e.Request,
	}
	via, ok := d.route(e, out)
	if !ok {
		return false
	}
	value, err := encodeJob(out)
	if err != nil {
		d.deliver(partition.Result{Job: e.Job, Key: e.Key, Revision: e.Revision, Err: fmt.Errorf("solve: %w: %w", commit.ErrPermanent, err)})
		return true
	}
	rec := d.r.cfg.Secret.record(d.r.cfg.Requests(e.Region), via, []byte(e.Key), value)
	d.r.client.TryProduce(d.r.ctx, rec, func(_ *kgo.Record, err error) {
		if err == nil {
			d.r.sent.Add(1)
			return
		}
		d.r.unsent.Add(1)
		d.r.tellUnsent(e.Region, err)
		if errors.Is(err, kerr.MessageTooLarge) {
			d.deliver(partition.Result{
				Job: e.Job, Key: e.Key, Revision: e.Revision, Err: fmt.Errorf("solve: send a request: %w: %w", commit.ErrPermanent, err),
			})
		}
	})
	return true
}

// tellUnsent says that requests are not sent, now and then: there may be one a job.
func (r *Remote) tellUnsent(region string, err error) {
	now, told := time.Now().UnixNano(), r.unsentTold.Load()
	if r.ctx.Err() != nil || now-told < int64(30*time.Second) || !r.unsentTold.CompareAndSwap(told, now) {
		return
	}
	r.cfg.Log.LogAttrs(r.ctx, slog.LevelWarn, "requests to matchers could not be sent; each is tried again at its next deadline",
		slog.String("region", region), slog.Int64("unsent", r.unsent.Load()), slog.Any("err", err))
}

// route chooses the partition of a job and fills in the replica that it is for.
func (d *Desk) route(e partition.Dispatch, out *job) (via int32, ok bool) {
	now := time.Now()
	d.r.mu.Lock()
	defer d.r.mu.Unlock()
	known := d.r.routesOf(e.Region)
	if known == nil {
		return 0, false
	}
	last, again := d.out.jobs[e.Job]
	if e.Attempt > 0 && again {
		known.timedOut(last, now)
	}
	switch number, name, named := strings.Cut(e.Replica, "/"); {
	case named:
		out.replica = name
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n >= len(known.vias) {
			n = 0 // it will say that it does not hold the trip
		}
		via = int32(n)
	case e.Attempt > 0 && again:
		via = known.other(e.Key, last, e.Attempt, now)
	default:
		via = known.first(e.Key, now)
	}
	d.out.note(e.Job, sent{via: via, at: now})
	return via, true
}
