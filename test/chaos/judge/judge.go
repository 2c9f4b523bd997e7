package judge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Verdict is what came of judging a history.
type Verdict struct {
	Violations []Violation    `json:"violations"`
	Checked    map[string]int `json:"checked"` // what was looked at, by name
}

// Judge checks everything.
func Judge(h *History) Verdict {
	j := newJudgement(h)
	j.outputs()
	j.losses()
	j.order()
	j.epochs()
	j.ledger()
	j.frontiers()
	j.tables()
	j.ends()
	if !h.Mode.Transactional() {
		j.checked["repeats dropped"] = j.repeats
	}
	return Verdict{Violations: j.violations, Checked: j.checked}
}

// lane is one key of one raw partition: what revisions rise along.
type lane struct {
	partition int32
	key       string
}

// expectation is what must become of a lane's records.
type expectation struct {
	good       []ID // one output each, in order
	poison     []ID // one dead letter each
	quarantine []ID
}

// value is the counter workload's output.
type value struct {
	Key        string `json:"key"`
	N          int64  `json:"n"`
	Segment    int64  `json:"segment"`
	Reset      string `json:"reset"`
	Topic      string `json:"topic"`
	Generation int32  `json:"generation"`
	Partition  int32  `json:"partition"`
	Offset     int64  `json:"offset"`
}

// named is an output that was understood.
type named struct {
	*Output
	id         ID
	generation int64
	epoch      int64
	value      value // of no dead letter
}

type judgement struct {
	h          *History
	raw        map[ID]*Raw
	lanes      map[lane]*expectation
	outs       []named        // first copies, in the order of their partitions
	first      map[ID]named   // of outputs and dead letters
	entries    map[ID][]Entry // of the ledger
	quarantine map[ID]*Quarantined
	repeats    int
	violations []Violation
	checked    map[string]int
}

func newJudgement(h *History) *judgement {
	j := &judgement{
		h: h, raw: map[ID]*Raw{}, lanes: map[lane]*expectation{}, first: map[ID]named{}, entries: map[ID][]Entry{},
		quarantine: map[ID]*Quarantined{}, checked: map[string]int{"raw records": len(h.Raw), "outputs and dead letters": len(h.Outputs)},
	}
	for i := range h.Raw {
		r := &h.Raw[i]
		j.raw[r.ID] = r
		at := lane{r.ID.Partition, r.Key}
		e := j.lanes[at]
		if e == nil {
			e = &expectation{}
			j.lanes[at] = e
		}
		switch {
		case strings.HasPrefix(r.Value, "poison"):
			e.poison = append(e.poison, r.ID)
		case len(e.quarantine) > 0 || strings.HasPrefix(r.Value, "refuse"):
			e.quarantine = append(e.quarantine, r.ID)
		default:
			e.good = append(e.good, r.ID)
		}
	}
	for _, e := range h.Ledger {
		for _, offset := range e.Offsets {
			id := ID{e.Partition, offset}
			j.entries[id] = append(j.entries[id], e)
		}
	}
	for i := range h.Quarantine {
		j.quarantine[h.Quarantine[i].ID] = &h.Quarantine[i]
	}
	return j
}

// violate notes a violation. After the first few nobody reads histories.
func (j *judgement) violate(kind string, subject fmt.Stringer, history []string, format string, args ...any) {
	if len(j.violations) >= tellAll {
		history = nil
	}
	j.violations = append(j.violations, Violation{Kind: kind, Subject: subject.String(), Detail: fmt.Sprintf(format, args...), History: history})
}

// String names a lane.
func (l lane) String() string { return fmt.Sprintf("key %q of partition %d", l.key, l.partition) }

type text string

func (t text) String() string { return string(t) }

// outputs reads every output: what it says of itself, whether it is there once.
func (j *judgement) outputs() {
	for i := range j.h.Outputs {
		o := &j.h.Outputs[i]
		at := text(fmt.Sprintf("output %d@%d", o.Partition, o.Offset))
		if o.Dead {
			at = text(fmt.Sprintf("dead letter %d@%d", o.Partition, o.Offset))
		}
		n, err := j.understand(o)
		if err != nil {
			j.violate("content", at, j.about(n.id), "%v", err)
			continue
		}
		if j.raw[n.id] == nil {
			j.violate("foreign", at, j.about(n.id), "there is no raw record %s", n.id)
			continue
		}
		was, again := j.first[n.id]
		switch {
		case !again:
			j.first[n.id] = n
			j.outs = append(j.outs, n)
			if err := j.agrees(n); err != nil {
				j.violate(kindOf(n), at, j.about(n.id), "%v", err)
			}
		case j.h.Mode.Transactional():
			j.violate("twice", n.id, j.about(n.id), "came out at %d@%d and at %d@%d", was.Partition, was.Offset, o.Partition, o.Offset)
		default:
			j.repeats++
			if what := differs(was.Output, o); what != "" {
				j.violate("twice", n.id, j.about(n.id), "repeated with another %s at %d@%d and at %d@%d", what, was.Partition, was.Offset, o.Partition, o.Offset)
			}
		}
	}
}

func kindOf(n named) string {
	if n.Dead {
		return "dead letter"
	}
	return "content"
}

// understand reads headers and value, and compares them with each other.
func (j *judgement) understand(o *Output) (named, error) {
	n := named{Output: o}
	rest, ok := strings.CutPrefix(o.Header("ce_id"), j.h.RawTopic+"/")
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 4 {
		return n, fmt.Errorf("ce_id is %q", o.Header("ce_id"))
	}
	var v [4]int64
	for i, p := range parts {
		x, err := strconv.ParseInt(p, 10, 64)
		if err != nil {
			return n, fmt.Errorf("ce_id is %q", o.Header("ce_id"))
		}
		v[i] = x
	}
	n.id, n.generation = ID{int32(v[1]), v[2]}, v[0]
	if want := fmt.Sprintf("%d.%d", v[0], v[2]); o.Header("ce_revision") != want || v[3] != 0 {
		return n, fmt.Errorf("ce_id is %q and ce_revision %q", o.Header("ce_id"), o.Header("ce_revision"))
	}
	epoch, err := strconv.ParseInt(o.Header("ce_epoch"), 10, 64)
	if err != nil || epoch < 1 {
		return n, fmt.Errorf("ce_epoch is %q", o.Header("ce_epoch"))
	}
	n.epoch = epoch
	if o.Header("ce_subject") != o.Key {
		return n, fmt.Errorf("the record's key is %q and ce_subject %q", o.Key, o.Header("ce_subject"))
	}
	if o.Dead {
		return n, nil
	}
	if err := json.Unmarshal([]byte(o.Value), &n.value); err != nil {
		return n, fmt.Errorf("value: %w", err)
	}
	want := value{
		Key: o.Key, N: n.value.N, Segment: 1, Topic: j.h.RawTopic, Generation: int32(n.generation), Partition: n.id.Partition, Offset: n.id.Offset,
	}
	if n.value != want {
		return n, fmt.Errorf("the value says %+v, the headers %+v", n.value, want)
	}
	return n, nil
}

// agrees compares an output with its raw record.
func (j *judgement) agrees(n named) error {
	r := j.raw[n.id]
	poison := strings.HasPrefix(r.Value, "poison")
	full := n.Header("ce_reason") == "quarantine_full"
	switch {
	case r.Key != n.Key:
		return fmt.Errorf("its key is %q, the raw record's %q", n.Key, r.Key)
	case n.Dead != (poison || full):
		return fmt.Errorf("its raw record has the value %q", r.Value)
	case n.Dead && n.Value != r.Value:
		return fmt.Errorf("its value is %q, the raw record's %q", n.Value, r.Value)
	case poison && n.Header("ce_reason") != "poison":
		return fmt.Errorf("its reason is %q", n.Header("ce_reason"))
	}
	return nil
}

// differs names what two copies do not share. A dead letter is made again from the raw record, under another epoch.
func differs(a, b *Output) string {
	switch {
	case a.Dead != b.Dead:
		return "topic"
	case a.Key != b.Key:
		return "key"
	case a.Value != b.Value:
		return "value"
	case len(a.Headers) != len(b.Headers):
		return "number of headers"
	}
	for i, h := range a.Headers {
		mayDiffer := a.Dead && h.Name == "ce_epoch" && b.Headers[i].Name == "ce_epoch"
		if h != b.Headers[i] && !mayDiffer {
			return "header " + h.Name
		}
	}
	return ""
}

// losses looks for raw records that became nothing, and for what stands in quarantine.
func (j *judgement) losses() {
	for _, r := range j.h.Raw {
		n, out := j.first[r.ID]
		q := j.quarantine[r.ID]
		switch {
		case !out && q == nil && j.h.Stuck != "": // it is among what that tells of
		case !out && q == nil:
			j.violate("lost", r.ID, j.about(r.ID), "key %q, value %q", r.Key, r.Value)
		case out && q != nil && !q.Discarded:
			j.violate("quarantine", r.ID, j.about(r.ID), "stands in quarantine and came out at %d@%d", n.Partition, n.Offset)
		}
	}
	seen := map[ID]bool{}
	for _, q := range j.h.Quarantine {
		r := j.raw[q.ID]
		switch {
		case r == nil:
			j.violate("quarantine", q.ID, nil, "a row of no raw record")
		case seen[q.ID]:
			j.violate("quarantine", q.ID, j.about(q.ID), "two rows")
		case q.Unreadable || q.Key != r.Key || q.Value != r.Value:
			j.violate("quarantine", q.ID, j.about(q.ID), "the row keeps key %q, value %q; the raw record has %q, %q", q.Key, q.Value, r.Key, r.Value)
		case !slices.Contains(j.lanes[lane{r.ID.Partition, r.Key}].quarantine, q.ID):
			j.violate("quarantine", q.ID, j.about(q.ID), "nothing refused key %q before", r.Key)
		}
		seen[q.ID] = true
	}
	j.checked["quarantine rows"] = len(j.h.Quarantine)
}

// order follows each lane through the outputs.
func (j *judgement) order() {
	came := map[lane][]named{}
	for _, n := range j.outs {
		if !n.Dead {
			at := lane{n.id.Partition, n.Key}
			came[at] = append(came[at], n)
		}
	}
	for _, at := range sorted(j.lanes) {
		e, got := j.lanes[at], came[at]
		partition := int32(-1)
		var generation int64
		for i, n := range got {
			if i < len(e.good) && n.id != e.good[i] {
				j.violate("order", at, j.about(n.id), "output %d is of %s, the raw record is %s", i+1, n.id, e.good[i])
				break
			}
			if n.value.N != int64(i+1) {
				j.violate("order", at, j.about(n.id), "%s has number %d, want %d", n.id, n.value.N, i+1)
				break
			}
			if partition >= 0 && n.Partition != partition || n.generation < generation {
				j.violate("order", at, j.about(n.id), "%s came out in partition %d, generation %d, after partition %d, generation %d",
					n.id, n.Partition, n.generation, partition, generation)
				break
			}
			partition, generation = n.Partition, n.generation
		}
		if len(got) > len(e.good) {
			j.violate("order", at, j.about(got[len(e.good)].id), "%d outputs, %d records that should have one", len(got), len(e.good))
		}
	}
	j.checked["keys of partitions"] = len(j.lanes)
}

func sorted(lanes map[lane]*expectation) []lane {
	return slices.SortedFunc(maps.Keys(lanes), func(a, b lane) int { return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.key, b.key)) })
}
