package partition

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// toy is a small workload: a record's value is a word, a key's state is the count of words and a digest of them in
// order, so that a word lost, doubled or moved shows in all that follows. Words that begin with a sign are special:
//
//	~w   decided locally, as a terminal
//	?    poison
//	!p   cannot be planned, !s cannot be solved, !c cannot be committed: permanently
//	!o   opens nothing
//
// A key's region is its first letter.
type toy struct {
	budget time.Duration
	chart  string // what a road map is to a real one; it shows in requests and in outputs
}

func (toy) Decode(r *stream.Record) (Observation, error) {
	word := string(r.Value)
	switch {
	case len(r.Key) == 0:
		return Observation{}, &commit.PoisonError{Reason: "missing_key", Detail: "no key"}
	case strings.HasPrefix(word, "?"):
		return Observation{}, &commit.PoisonError{Reason: "undecodable", Detail: "a question"}
	}
	return Observation{Key: stream.Key(r.Key), Time: r.Timestamp, Value: word}, nil
}

func (w toy) Open(k KeyState, o Observation, more ...Observation) Opening {
	word := o.Value.(string)
	local := strings.HasPrefix(word, "~")
	words, count := word, 1
	for _, next := range more {
		w := next.Value.(string)
		if strings.HasPrefix(w, "~") != local || w == "!o" {
			break
		}
		words, count = words+" "+w, count+1
	}
	switch {
	case local:
		return Opening{Local: &Decision{Kind: Terminal, Reason: "local"}, Count: count}
	case word == "!o":
		return Opening{}
	}
	opening := Opening{
		Request: fmt.Appendf(nil, "%s%s %s", w.chart, toyState(k), words), Count: count, Region: string(o.Key[:1]), Budget: w.budget,
	}
	if k.Sticky && w.chart == "" {
		opening.Short = fmt.Appendf(nil, "#%08x %s", digest(toyState(k)), words)
	}
	return opening
}

// toyState reads a checkpoint; one that cannot be read is lost, and rides as a reset on what commits next.
func toyState(k KeyState) string {
	state := string(k.Checkpoint.State)
	switch {
	case k.Expired:
		return "expired"
	case k.Anew != "":
		return "lost"
	case strings.HasPrefix(state, "garbled"):
		return "lost"
	case k.Checkpoint.Revision.IsZero():
		return "0:0"
	}
	return state
}

// toySolve is the solver: a pure function of the request and of its flavour, which is what a new map is to a matcher. Of a run each word is solved
// over the state that the one before makes; one that cannot be solved fails them all.
func toySolve(request []byte, flavour int) (d Decision, err error) {
	state, words, _ := strings.Cut(string(request), " ")
	chart, state := toyChart(state)
	d.Kind = Solved
	before, answer := "", []byte(nil)
	for i, word := range strings.Split(words, " ") {
		if word == "!s" {
			return Decision{}, fmt.Errorf("solve: %w", commit.ErrPermanent)
		}
		if i > 0 {
			state = toyFold(state, before, string(answer))
		}
		answer = fmt.Appendf(nil, "%08x", digest(chart+state+" "+word)+uint32(flavour))
		if before = word; i == 0 {
			d.Answer = answer
		} else {
			d.More = append(d.More, answer)
		}
	}
	return d, nil
}

// toyChart parts the chart from the state of a request.
func toyChart(s string) (chart, state string) {
	if i := strings.LastIndex(s, "/"); i >= 0 {
		return s[:i+1], s[i+1:]
	}
	return "", s
}

func (w toy) Plan(k KeyState, o Observation, d Decision) (commit.Plan, error) {
	word := o.Value.(string)
	if word == "!p" {
		return commit.Plan{}, errors.New("no plan")
	}
	state, segment := toyState(k), k.Checkpoint.Segment
	p := commit.Plan{}
	if state == "lost" || state == "expired" || segment == 0 {
		segment++
		if state == "lost" || state == "expired" {
			p.Outputs = append(p.Outputs, toyOutput(k, o, 0, "reset "+state))
		}
	}
	next := toyFold(state, word, string(d.Answer))
	p.Outputs = append(p.Outputs, toyOutput(k, o, len(p.Outputs), w.chart+word+" "+next))
	p.Next = commit.Checkpoint{Revision: o.Identity.Revision, Segment: segment, State: []byte(next)}
	return p, nil
}

func toyFold(state, word, answer string) string {
	if state == "lost" || state == "expired" {
		state = "0:0"
	}
	var count, sum uint32
	if _, err := fmt.Sscanf(state, "%d:%x", &count, &sum); err != nil {
		panic(fmt.Sprintf("toy state %q: %v", state, err))
	}
	return fmt.Sprintf("%d:%x", count+1, digest(fmt.Sprint(sum, word, answer)))
}

func toyOutput(k KeyState, o Observation, index int, value string) commit.Output {
	e := stream.CloudEvent{
		Type: "milepost.toy.v1", Group: "g", Identity: o.Identity, Index: index, Subject: o.Key, Time: o.Time, Epoch: k.Epoch,
	}
	return commit.Output{Topic: "out", Key: []byte(o.Key), Value: []byte(value), Headers: e.Headers()}
}

func (toy) DeadLetter(id stream.Identity, epoch stream.Epoch, r *stream.Record, poison *commit.PoisonError) commit.Output {
	e := stream.CloudEvent{Type: "milepost.dead-letter.v1", Group: "g", Identity: id, Subject: stream.Key(r.Key), Epoch: epoch, Reason: poison.Reason}
	return commit.Output{Topic: "dead", Key: r.Key, Value: r.Value, Headers: e.Headers()}
}

func digest(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s))
	return h.Sum32()
}

// toyStart is the instant at which every test's clock stands at first.
func toyStart() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

func toyTenure(epoch stream.Epoch) *commit.Tenure {
	return commit.NewTenure(commit.Ownership{
		Group: "g", Partition: stream.Partition{Topic: "raw", Number: 3}, TopicGeneration: 1, Epoch: epoch, Nonce: stream.Nonce{byte(epoch)}, MemberID: "m",
	})
}

func toyRecord(offset int64, key, word string) stream.Record {
	return stream.Record{
		Partition: stream.Partition{Topic: "raw", Number: 3}, Offset: offset, LeaderEpoch: 7,
		Timestamp: toyStart().Add(time.Duration(offset) * time.Second), Key: []byte(key), Value: []byte(word),
	}
}

func (toy) Diverged(state []byte) []byte { return append([]byte("garbled "), state...) }
