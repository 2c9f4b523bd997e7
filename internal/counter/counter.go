package counter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"milepost/internal/commit"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

// CountedType and DeadLetterType are the outputs' ce_type.
const (
	CountedType    = "milepost.counter.counted.v1"
	DeadLetterType = "milepost.counter.dead_letter.v1"
)

// The words that a special value begins with.
const (
	Poison = "poison"
	Refuse = "refuse"
)

// PoisonReasons lists every poison reason.
func PoisonReasons() []string { return []string{"bad_key", Poison} }

// ResetReasons lists every reset reason; data_loss and operator are the machine's, as partition.KeyState.Anew.
func ResetReasons() []string { return []string{"state_lost", "expired", "data_loss", "operator"} }

// Config holds the workload's settings; all but SolveTime must be set.
type Config struct {
	Group           string // the consumer group's name, for the outputs' ce_source
	Topic           string // of the outputs
	DeadLetterTopic string
	// SolveTime is how long a solver takes over each record; 0: the workload decides itself.
	SolveTime time.Duration
}

// Workload is the counter workload. It is immutable and pure.
type Workload struct{ cfg Config }

// New makes the workload.
func New(cfg Config) (*Workload, error) {
	if cfg.Group == "" || cfg.Topic == "" || cfg.DeadLetterTopic == "" || cfg.SolveTime < 0 {
		return nil, errors.New("counter: group, topic and dead-letter topic must be set, and the solve time not negative")
	}
	return &Workload{cfg: cfg}, nil
}

// Output is the value of an output.
type Output struct {
	Key        string `json:"key"`
	N          int64  `json:"n"`
	Segment    int64  `json:"segment"`
	Reset      string `json:"reset,omitempty"`
	Topic      string `json:"topic"`
	Generation int32  `json:"generation"`
	Partition  int32  `json:"partition"`
	Offset     int64  `json:"offset"`
}

// Decode takes every record but those without a readable key and those that say that they are poison.
func (w *Workload) Decode(r *stream.Record) (partition.Observation, error) {
	switch {
	case len(r.Key) == 0 || !utf8.Valid(r.Key) || bytes.IndexByte(r.Key, 0) >= 0:
		return partition.Observation{}, &commit.PoisonError{Reason: "bad_key", Detail: "the key is not text"}
	case bytes.HasPrefix(r.Value, []byte(Poison)):
		return partition.Observation{}, &commit.PoisonError{Reason: Poison, Detail: "the record says so"}
	}
	return partition.Observation{
		Key: stream.Key(r.Key), Time: r.Timestamp, Record: r, Value: bytes.HasPrefix(r.Value, []byte(Refuse)),
	}, nil
}

// Open decides at once, all that waits together, or asks the solver, whose answer is nothing but its time, one by one.
func (w *Workload) Open(_ partition.KeyState, o partition.Observation, more ...partition.Observation) partition.Opening {
	if w.cfg.SolveTime == 0 {
		return partition.Opening{Local: &partition.Decision{Kind: partition.Solved}, Count: 1 + len(more)}
	}
	return partition.Opening{Request: []byte(o.Identity.OutputID(0))}
}

// Plan counts.
func (w *Workload) Plan(k partition.KeyState, o partition.Observation, _ partition.Decision) (commit.Plan, error) {
	if refused, ok := o.Value.(bool); !ok || refused {
		return commit.Plan{}, fmt.Errorf("counter: observation %s says that it cannot be planned: %w", o.Identity.Revision, commit.ErrPermanent)
	}
	n, reset := restore(k)
	out := Output{
		Key: string(o.Key), N: n + 1, Segment: max(k.Checkpoint.Segment, 1), Reset: reset, Topic: o.Identity.Partition.Topic,
		Generation: o.Identity.Revision.Generation, Partition: o.Identity.Partition.Number, Offset: o.Identity.Revision.Offset,
	}
	if reset != "" {
		out.Segment = k.Checkpoint.Segment + 1
	}
	value, err := json.Marshal(out)
	if err != nil {
		return commit.Plan{}, fmt.Errorf("counter: %w: %w", commit.ErrPermanent, err)
	}
	event := stream.CloudEvent{
		Type: CountedType, Group: w.cfg.Group, Identity: o.Identity, Subject: o.Key, Time: o.Time, Epoch: k.Epoch, ContentType: "application/json",
	}
	return commit.Plan{
		Next:    commit.Checkpoint{Revision: o.Identity.Revision, Segment: out.Segment, State: strconv.AppendInt(nil, out.N, 10)},
		Outputs: []commit.Output{{Topic: w.cfg.Topic, Key: []byte(o.Key), Value: value, Headers: event.Headers()}},
		Reset:   reset,
	}, nil
}

// restore gives the count so far, and the reset with which it begins anew.
func restore(k partition.KeyState) (n int64, reset string) {
	if k.Checkpoint.Revision.IsZero() {
		return 0, ""
	}
	if k.Anew != "" {
		return 0, k.Anew
	}
	if k.Expired {
		return 0, "expired"
	}
	n, ok := count(k.Checkpoint.State)
	if !ok {
		return 0, "state_lost"
	}
	return n, ""
}

func count(state []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(state), 10, 64)
	return n, err == nil && n >= 1 && n < math.MaxInt64
}

// Tail gives what retention keeps of a state: nothing. A state that cannot be read gives nil: it is lost, not expired.
func Tail(state []byte) []byte {
	if _, ok := count(state); !ok {
		return nil
	}
	return []byte{}
}

// Diverged gives a state that cannot be read, so that the key's next commit announces a reset.
func (w *Workload) Diverged([]byte) []byte { return nil }

// DeadLetter gives the record's own bytes, with headers that say where it stood and why it is here.
func (w *Workload) DeadLetter(id stream.Identity, epoch stream.Epoch, r *stream.Record, p *commit.PoisonError) commit.Output {
	event := stream.CloudEvent{
		Type: DeadLetterType, Group: w.cfg.Group, Identity: id, Subject: stream.Key(bytes.ToValidUTF8(r.Key, []byte("\uFFFD"))),
		Time: r.Timestamp, Epoch: epoch, Reason: p.Reason,
	}
	return commit.Output{Topic: w.cfg.DeadLetterTopic, Key: r.Key, Value: r.Value, Headers: event.Headers()}
}
