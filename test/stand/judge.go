package stand

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Verdict is what a stranger finds who reads the topics and the tables.
type Verdict struct {
	Raw, Outputs int
	Repeats      int      // copies of the same bytes: a fault, unless the publish mode is idempotent
	Faults       []string // lost, repeated, out of order, miscounted, by an older owner after a newer one, left behind
}

func (v *Verdict) fault(format string, args ...any) {
	v.Faults = append(v.Faults, fmt.Sprintf(format, args...))
}

func (v *Verdict) String() string {
	return fmt.Sprintf("%d raw, %d outputs, %d repeats; %d faults %.3q", v.Raw, v.Outputs, v.Repeats, len(v.Faults), v.Faults[:min(len(v.Faults), 5)])
}

// place is where a raw record stands.
type place struct {
	partition int32
	offset    int64
}

// history is a key's raw records in order, and how many of them have come out.
type history struct {
	places []place
	out    int
	epoch  int64
}

// Judge reads everything there is. Call it after the drain.
func (j *Job) Judge(idempotent bool) Verdict {
	j.tb.Helper()
	ctx := Limit(j.tb, 2*time.Minute)
	var v Verdict
	keys := map[string]*history{}
	err := ReadTopic(ctx, j.stand.Kafka.Addrs(), j.Raw, kgo.ReadUncommitted(), func(r *kgo.Record) {
		v.Raw++
		h := keys[string(r.Key)]
		if h == nil {
			h = &history{}
			keys[string(r.Key)] = h
		}
		h.places = append(h.places, place{r.Partition, r.Offset})
	})
	if err != nil {
		j.tb.Fatal(err)
	}
	copies := map[string][sha256.Size]byte{}
	if err := ReadTopic(ctx, j.stand.Kafka.Addrs(), j.Prefix+".matched", kgo.ReadCommitted(), func(r *kgo.Record) {
		v.Outputs++
		id := Header(r, "ce_id")
		sum := digest(r)
		if first, seen := copies[id]; seen {
			v.Repeats++
			if !idempotent || first != sum {
				v.fault("key %s: %s came out again", r.Key, id)
			}
			return
		}
		copies[id] = sum
		counted := j.Counted
		if bytes.HasPrefix(r.Key, []byte("hold ")) {
			counted = 0
		}
		v.judge(keys[string(r.Key)], r, counted)
	}); err != nil {
		j.tb.Fatal(err)
	}
	if err := ReadTopic(ctx, j.stand.Kafka.Addrs(), j.Prefix+".dead-letter", kgo.ReadCommitted(), func(r *kgo.Record) {
		v.fault("key %s: a dead letter", r.Key)
	}); err != nil {
		j.tb.Fatal(err)
	}
	for key, h := range keys {
		if h.out < len(h.places) {
			v.fault("key %s: %d of %d records came out, the next is %v", key, h.out, len(h.places), h.places[h.out])
		}
	}
	j.judgeTables(ctx, &v)
	return v
}

// judge takes a key's next output: it must be that of the key's next record. So many were counted before the first.
func (v *Verdict) judge(h *history, r *kgo.Record, counted int) {
	if h == nil || h.out == len(h.places) {
		v.fault("key %s: an output of no record: %s", r.Key, r.Value)
		return
	}
	var got struct {
		Key       string `json:"key"`
		N         int    `json:"n"`
		Segment   int64  `json:"segment"`
		Reset     string `json:"reset"`
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
		Offset    int64  `json:"offset"`
	}
	if err := json.Unmarshal(r.Value, &got); err != nil {
		v.fault("key %s: %v", r.Key, err)
		return
	}
	want := h.places[h.out]
	h.out++
	if got.Key != string(r.Key) || got.N != counted+h.out || got.Segment != 1 || got.Reset != "" || (place{got.Partition, got.Offset}) != want {
		v.fault("output %d of key %s is %s, want n %d of %v in segment 1 without a reset", h.out, r.Key, r.Value, counted+h.out, want)
	}
	if id, want := Header(r, "ce_id"), fmt.Sprintf("%s/1/%d/%d/0", got.Topic, want.partition, want.offset); id != want {
		v.fault("output %d of key %s has the id %s, want %s", h.out, r.Key, id, want)
	}
	epoch, err := strconv.ParseInt(Header(r, "ce_epoch"), 10, 64)
	if err != nil || epoch < h.epoch {
		v.fault("output %d of key %s is of epoch %q, the one before of %d", h.out, r.Key, Header(r, "ce_epoch"), h.epoch)
	}
	h.epoch = epoch
}

// judgeTables says what a drain must not leave behind.
func (j *Job) judgeTables(ctx context.Context, v *Verdict) {
	for what, count := range map[string]string{
		"commits stand prepared": "SELECT count(*) FROM checkpoint WHERE has_prepared",
		"rows are in quarantine": "SELECT count(*) FROM quarantine",
	} {
		var n int
		if err := j.DB.QueryRow(ctx, count).Scan(&n); err != nil || n > 0 {
			v.fault("%d %s: %v", n, what, err)
		}
	}
	ends, err := j.Ends(ctx)
	if err == nil {
		err = errors.Join(j.Reached(ctx, ends), j.HintLeads(ctx))
	}
	if err != nil {
		v.fault("%v", err)
	}
}

func digest(r *kgo.Record) [sha256.Size]byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%q %q", r.Key, r.Value)
	for _, h := range r.Headers {
		fmt.Fprintf(&b, " %q=%q", h.Key, h.Value)
	}
	return sha256.Sum256(b.Bytes())
}
