package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/stream"
)

// Config says what to audit.
type Config struct {
	Client  []kgo.Opt // brokers, security
	Raw     string
	Outputs []string // topics with outputs and dead letters
	// From are the raw offsets to begin at, by partition; absent partitions from the start.
	From map[int32]int64
	// Each, when set, sees every output record once, in the order of its partition, on Run's goroutine.
	Each func(r *kgo.Record)
}

// Report is what the auditor has seen.
type Report struct {
	Observations int64 // raw records
	Outputs      int64 // output records of index 0, the first of each identity
	DeadLetters  int64 // of them: with a reason
	Lost         int64 // observations without an output
	Repeated     int64
	Foreign      int64
	Disordered   int64
	Unreadable   int64 // output records whose headers make no sense
	P50, P99     time.Duration
	// Examples are a few identities for each kind of finding.
	Examples []string
}

// Clean reports whether nothing is wrong with the outputs. What is lost is only final after a drain.
func (r Report) Clean() bool {
	return r.Lost == 0 && r.Repeated == 0 && r.Foreign == 0 && r.Disordered == 0 && r.Unreadable == 0
}

// examples kept a report.
const maxExamples = 20

// identity is one observation's place in the raw topic.
type identity struct {
	partition int32
	offset    int64
}

// observation is what is known of one identity.
type observation struct {
	written time.Time // zero: the raw record has not been read yet
	seen    time.Time // zero: no output yet
}

// Auditor reads and judges.
type Auditor struct {
	cfg Config

	mu           sync.Mutex
	observations map[identity]*observation
	positions    map[string]map[int32]int64 // next offset to read, by topic and partition
	last         map[lastKey]stream.Revision
	report       Report // counters only; the rest is computed
	ids          map[string]struct{}
	moved        chan struct{}
}

// lastKey is what revisions rise along: one key of one raw partition.
type lastKey struct {
	raw     int32
	subject string
}

// New makes an auditor that has read nothing.
func New(cfg Config) *Auditor {
	return &Auditor{
		cfg: cfg, observations: map[identity]*observation{}, positions: map[string]map[int32]int64{},
		last: map[lastKey]stream.Revision{}, ids: map[string]struct{}{}, moved: make(chan struct{}),
	}
}

// Run reads until ctx ends.
func (a *Auditor) Run(ctx context.Context) error {
	offsets := map[string]map[int32]kgo.Offset{}
	client, err := kgo.NewClient(append(slices.Clone(a.cfg.Client),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))...)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	defer client.Close()
	for _, topic := range append([]string{a.cfg.Raw}, a.cfg.Outputs...) {
		n, err := partitions(ctx, client, topic)
		if err != nil {
			return err
		}
		offsets[topic] = map[int32]kgo.Offset{}
		a.mu.Lock()
		a.positions[topic] = map[int32]int64{}
		a.mu.Unlock()
		for p := range n {
			at := kgo.NewOffset().AtStart()
			if from, ok := a.cfg.From[p]; ok && topic == a.cfg.Raw {
				at = kgo.NewOffset().At(from)
			}
			offsets[topic][p] = at
		}
	}
	client.AddConsumePartitions(offsets)
	for {
		fetches := client.PollFetches(ctx)
		now := time.Now()
		if ctx.Err() != nil {
			return nil
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) { a.take(p, now) })
	}
}

func partitions(ctx context.Context, client *kgo.Client, topic string) (int32, error) {
	for {
		details, err := kadm.NewClient(client).ListTopics(ctx, topic)
		if err == nil {
			if err = details[topic].Err; err == nil {
				return int32(len(details[topic].Partitions)), nil
			}
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("audit: read the partitions of topic %s: %w", topic, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// take judges the records of one fetched partition.
func (a *Auditor) take(p kgo.FetchTopicPartition, now time.Time) {
	if len(p.Records) == 0 {
		return
	}
	a.mu.Lock()
	for _, r := range p.Records {
		a.positions[r.Topic][r.Partition] = r.Offset + 1
		switch {
		case r.Attrs.IsControl():
		case r.Topic == a.cfg.Raw:
			a.at(identity{r.Partition, r.Offset}).written = r.Timestamp
			a.report.Observations++
		default:
			a.judge(r, now)
		}
	}
	close(a.moved)
	a.moved = make(chan struct{})
	a.mu.Unlock()
	if a.cfg.Each != nil && p.Topic != a.cfg.Raw {
		for _, r := range p.Records {
			if !r.Attrs.IsControl() {
				a.cfg.Each(r)
			}
		}
	}
}

func (a *Auditor) at(id identity) *observation {
	o := a.observations[id]
	if o == nil {
		o = &observation{}
		a.observations[id] = o
	}
	return o
}

// judge books one output record.
func (a *Auditor) judge(r *kgo.Record, now time.Time) {
	h := map[string]string{}
	for _, x := range r.Headers {
		h[x.Key] = string(x.Value)
	}
	id, index, rev, err := parse(h[stream.HeaderID], h[stream.HeaderRevision], a.cfg.Raw)
	if err != nil {
		a.report.Unreadable++
		a.example("unreadable output %s/%d@%d: %v", r.Topic, r.Partition, r.Offset, err)
		return
	}
	if _, again := a.ids[h[stream.HeaderID]]; again {
		a.report.Repeated++
		a.example("repeated %s at %s/%d@%d", h[stream.HeaderID], r.Topic, r.Partition, r.Offset)
		return
	}
	a.ids[h[stream.HeaderID]] = struct{}{}
	if h[stream.HeaderReason] != "" {
		a.report.DeadLetters++
	} else {
		// Dead letters are another topic: their order beside the outputs is nobody's promise.
		key := lastKey{id.partition, h[stream.HeaderSubject]}
		if last := a.last[key]; index == 0 && rev.Compare(last) <= 0 {
			a.report.Disordered++
			a.example("key at %s has revision %s after %s", h[stream.HeaderID], rev, last)
		}
		a.last[key] = rev
	}
	if index == 0 {
		a.report.Outputs++
		a.at(id).seen = now
	}
}

func (a *Auditor) example(format string, args ...any) {
	if len(a.report.Examples) < maxExamples {
		a.report.Examples = append(a.report.Examples, fmt.Sprintf(format, args...))
	}
}

// parse reads <raw topic>/<topic generation>/<partition>/<offset>/<index> and <topic generation>.<offset>.
func parse(id, revision, raw string) (identity, int, stream.Revision, error) {
	rest, ok := strings.CutPrefix(id, raw+"/")
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 4 {
		return identity{}, 0, stream.Revision{}, fmt.Errorf("ce_id %q is not an identity of topic %s", id, raw)
	}
	var n [4]int64
	for i, p := range parts {
		bits := 32
		if i == 2 { // the offset
			bits = 64
		}
		v, err := strconv.ParseInt(p, 10, bits)
		if err == nil && strconv.FormatInt(v, 10) != p {
			err = fmt.Errorf("%q is not how a number is written", p)
		}
		if err != nil {
			return identity{}, 0, stream.Revision{}, fmt.Errorf("ce_id %q: %w", id, err)
		}
		n[i] = v
	}
	rev := stream.Revision{Generation: int32(n[0]), Offset: n[2]}
	if rev.String() != revision {
		return identity{}, 0, stream.Revision{}, fmt.Errorf("ce_revision %q does not belong to ce_id %q", revision, id)
	}
	return identity{int32(n[1]), n[2]}, int(n[3]), rev, nil
}

// CaughtUp waits until the auditor has read the topics up to their ends as they are when it is called (read_committed).
func (a *Auditor) CaughtUp(ctx context.Context) error {
	client, err := kgo.NewClient(a.cfg.Client...)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListCommittedOffsets(ctx, append([]string{a.cfg.Raw}, a.cfg.Outputs...)...)
	if err = errors.Join(err, ends.Error()); err != nil {
		return fmt.Errorf("audit: list the topics' ends: %w", err)
	}
	return a.wait(ctx, func() bool {
		behind := false
		ends.Each(func(o kadm.ListedOffset) {
			behind = behind || o.Offset > 0 && a.positions[o.Topic][o.Partition] < o.Offset
		})
		return !behind
	})
}

// Answered waits until every raw record read so far has its output.
func (a *Auditor) Answered(ctx context.Context) error {
	return a.wait(ctx, func() bool { return a.report.Outputs >= a.report.Observations })
}

func (a *Auditor) wait(ctx context.Context, done func() bool) error {
	for {
		a.mu.Lock()
		ok, moved := done(), a.moved
		a.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Report gives what has been seen so far.
func (a *Auditor) Report() Report {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.report
	r.Examples = slices.Clone(r.Examples)
	var latencies []time.Duration
	for id, o := range a.observations {
		switch {
		case o.written.IsZero():
			r.Foreign++
			r.Examples = append(r.Examples, fmt.Sprintf("output of %d@%d, which the raw topic does not have", id.partition, id.offset))
		case o.seen.IsZero():
			r.Lost++
			r.Examples = append(r.Examples, fmt.Sprintf("no output of %d@%d", id.partition, id.offset))
		default:
			latencies = append(latencies, o.seen.Sub(o.written))
		}
	}
	slices.Sort(latencies)
	r.P50, r.P99 = quantile(latencies, 0.50), quantile(latencies, 0.99)
	slices.Sort(r.Examples)
	r.Examples = r.Examples[:min(len(r.Examples), maxExamples)]
	return r
}

// quantile is the nearest-rank quantile of sorted values.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
