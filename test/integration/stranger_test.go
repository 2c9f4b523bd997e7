//go:build integration

package integration_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/test/stand"
)

// Verdict is what a stranger can say about an output topic who knows Kafka and
// CloudEvents headers and nothing of Milepost: no code of it is used here.
type Verdict struct {
	Raw      int      // records of the raw topic
	Outputs  int      // committed outputs
	Lost     []string // raw records without an output
	Repeated []string // ids seen twice
	Dropped  int      // repeats of the same bytes, where a reader drops them
	Foreign  []string // outputs that name no raw record
	Disorder []string // keys whose revisions do not rise in the output's order
	Bad      []string // outputs whose headers contradict each other
}

// Clean tells that every observation came out exactly once and in order.
func (v Verdict) Clean() bool {
	return len(v.Lost)+len(v.Repeated)+len(v.Foreign)+len(v.Disorder)+len(v.Bad) == 0
}

func (v Verdict) String() string {
	first := func(list []string) string {
		return fmt.Sprintf("%d %v", len(list), list[:min(len(list), 3)])
	}

	return fmt.Sprintf("%d raw, %d outputs, %d dropped; lost %s; repeated %s; foreign %s; disorder %s; bad %s",
		v.Raw, v.Outputs, v.Dropped, first(v.Lost), first(v.Repeated), first(v.Foreign), first(v.Disorder), first(v.Bad))
}

// Judge reads the raw topic and the output topics to their present ends, the
// outputs with read_committed, and says what it found. Dead letters count as
// outputs when their topic is given, too.
func Judge(t *testing.T, s *Stack, raw string, outputs ...string) Verdict {
	t.Helper()

	return judgeTopics(t, s, &judge{raw: raw}, outputs)
}

// JudgeDropping is Judge for a reader of publish mode idempotent: it drops an
// id that it has seen before, and finds fault with one whose bytes differ.
func JudgeDropping(t *testing.T, s *Stack, raw string, outputs ...string) Verdict {
	t.Helper()

	return judgeTopics(t, s, &judge{raw: raw, copies: map[string][sha256.Size]byte{}}, outputs)
}

func judgeTopics(t *testing.T, s *Stack, j *judge, outputs []string) Verdict {
	t.Helper()
	raw := j.raw
	ctx := stand.Limit(t, 2*time.Minute)
	var v Verdict
	open := map[string]bool{} // <partition>/<offset> of raw records without an output
	err := stand.ReadTopic(ctx, s.Brokers, raw, kgo.ReadUncommitted(), func(r *kgo.Record) {
		v.Raw++
		open[fmt.Sprintf("%d/%d", r.Partition, r.Offset)] = true
	})
	if err != nil {
		t.Fatalf("read %s: %v", raw, err)
	}
	j.known, j.open, j.ids, j.last, j.verdict = maps.Clone(open), open, map[string]bool{}, map[string]revision{}, &v
	for _, topic := range outputs {
		if err := stand.ReadTopic(ctx, s.Brokers, topic, kgo.ReadCommitted(), j.take); err != nil {
			t.Fatalf("read %s: %v", topic, err)
		}
	}
	v.Lost = slices.Sorted(maps.Keys(open))

	return v
}

type revision struct{ generation, offset int64 }

type judge struct {
	raw     string
	known   map[string]bool
	open    map[string]bool
	ids     map[string]bool
	last    map[string]revision          // by output topic and key
	copies  map[string][sha256.Size]byte // by id; nil: a repeat is a fault
	verdict *Verdict
}

// copyOf tells that r repeats a record byte for byte.
func (j *judge) copyOf(r *kgo.Record, id string) bool {
	if j.copies == nil {
		return false
	}
	sum := sha256.New()
	for _, b := range [][]byte{[]byte(r.Topic), r.Key, r.Value} {
		fmt.Fprintf(sum, "%d:%s", len(b), b)
	}
	for _, h := range r.Headers {
		fmt.Fprintf(sum, "%q=%q", h.Key, h.Value)
	}
	digest := [sha256.Size]byte(sum.Sum(nil))
	first, seen := j.copies[id]
	j.copies[id] = digest

	return seen && first == digest
}

func (j *judge) take(r *kgo.Record) {
	v := j.verdict
	v.Outputs++
	id, subject := stand.Header(r, "ce_id"), stand.Header(r, "ce_subject")
	if j.copyOf(r, id) {
		v.Dropped++

		return
	}
	// <raw topic>/<topic generation>/<partition>/<offset>/<index>
	parts := strings.Split(strings.TrimPrefix(id, j.raw+"/"), "/")
	rev, err := parseRevision(stand.Header(r, "ce_revision"))
	if err != nil || len(parts) != 4 || !strings.HasPrefix(id, j.raw+"/") {
		v.Bad = append(v.Bad, id)

		return
	}
	if subject != string(r.Key) || strconv.FormatInt(rev.generation, 10) != parts[0] || strconv.FormatInt(rev.offset, 10) != parts[2] {
		v.Bad = append(v.Bad, id)
	}
	if j.ids[id] {
		v.Repeated = append(v.Repeated, id)
	}
	j.ids[id] = true
	source := parts[1] + "/" + parts[2]
	if !j.known[source] {
		v.Foreign = append(v.Foreign, id)
	}
	if parts[3] != "0" {
		return // a further output of the same observation
	}
	delete(j.open, source)
	if len(r.Key) == 0 {
		return // dead letters without a key, of whatever partition: there is no order among them
	}
	key := r.Topic + "\x00" + string(r.Key)
	if last, ok := j.last[key]; ok && (rev.generation < last.generation || rev.generation == last.generation && rev.offset <= last.offset) {
		v.Disorder = append(v.Disorder, id)
	}
	j.last[key] = rev
}

func parseRevision(s string) (revision, error) {
	generation, offset, ok := strings.Cut(s, ".")
	if !ok {
		return revision{}, errors.New("no revision")
	}
	g, err := strconv.ParseInt(generation, 10, 64)
	if err != nil {
		return revision{}, err
	}
	o, err := strconv.ParseInt(offset, 10, 64)

	return revision{g, o}, err
}
