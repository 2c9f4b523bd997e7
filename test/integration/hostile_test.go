//go:build integration

package integration_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/stream"
	"milepost/test/stand"
)

// hostileRecords are records that nobody should write, with the reason that each one's dead letter must give.
func hostileRecords() map[string]*kgo.Record {
	good := `{"time":"2026-05-01T12:00:00Z","lon":-75.5,"lat":39.1`
	record := func(key, value string, headers ...kgo.RecordHeader) *kgo.Record {
		return &kgo.Record{Key: []byte(key), Value: []byte(value), Headers: headers}
	}
	many := make([]kgo.RecordHeader, 5000)
	for i := range many {
		many[i] = kgo.RecordHeader{Key: "h" + strconv.Itoa(i), Value: []byte("x")}
	}
	return map[string]*kgo.Record{
		"undecodable:binary":              record("h1", "\x00\xff\x01\x80"),
		"undecodable:deep":                record("h2", good+`,"x":`+strings.Repeat("[", 30_000)),
		"undecodable:protobuf lengths":    record("h3", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
		"undecodable:twice":               record("h4", good+`,"lon":1}`),
		"undecodable:not utf-8":           record("h5", good+",\"provider\":\"\xc3\x28\"}"),
		"non_finite_coordinates:1e999":    record("h6", `{"time":"2026-05-01T12:00:00Z","lon":1e999,"lat":39.1}`),
		"invalid_time:year":               record("h7", `{"t_ms":9223372036854775807,"lon":-75.5,"lat":39.1}`),
		"bad_key:not utf-8":               record("\xff\xfe", good+"}"),
		"bad_key:long":                    record(strings.Repeat("k", 100_000), good+"}"),
		"no_key:":                         record("", good+"}"),
		"no_value:":                       {Key: []byte("h8")},
		"wrong_schema:":                   record("h9", good+"}", kgo.RecordHeader{Key: "content-type", Value: []byte(";;;=\x00")}),
		"too_large:as large as may be":    record("h10", strings.Repeat(" ", 999_000)),
		"undecodable:five thousand heads": record("h11", "?", many...),
	}
}

// P26, P27, P28, A3, F26: among the positions of 20 vehicles are records that nobody should write, for keys of their own and for the vehicles': each one's
// dead letter says why; a compressed batch of 100 MiB, and hundreds of MiB in small ones, are not held. Every vehicle's
// every position has its output, in order; nothing goes to quarantine; the process lives and stays within its memory.
func TestHostileInput(t *testing.T) {
	j := newJob(t, useStack(t), 20)
	w := j.worker(t, "worker")
	w.WaitLine(time.Minute, "recovered")
	want := map[string]int{}
	hostile := hostileRecords()
	bombs := j.stack.Client(t, kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerBatchMaxBytes(200<<20), kgo.BrokerMaxWriteBytes(400<<20),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	plain := j.stack.Client(t, kgo.ProducerBatchCompression(kgo.NoCompression()))
	zeros := make([]byte, 100<<20)
	j.drive(t, 6, func(second int) {
		switch second {
		case 1:
			for name, r := range hostile {
				reason, _, _ := strings.Cut(name, ":")
				for _, key := range [][]byte{r.Key, []byte("veh00003")} {
					if (reason == "bad_key" || reason == "no_key") && !bytes.Equal(key, r.Key) {
						continue
					}
					want[reason]++
					must(t, plain.ProduceSync(t.Context(), &kgo.Record{Topic: j.raw, Key: key, Value: r.Value, Headers: r.Headers}).FirstErr())
				}
			}
		case 2:
			want["unreadable"]++
			must(t, bombs.ProduceSync(t.Context(), &kgo.Record{Topic: j.raw, Partition: 1, Key: []byte("bomb"), Value: zeros}).FirstErr())
		case 3:
			for range 32 {
				want["too_large"]++
				must(t, bombs.ProduceSync(t.Context(), &kgo.Record{Topic: j.raw, Partition: 2, Key: []byte("bomblet"), Value: zeros[:20<<20]}).FirstErr())
			}
		}
	})
	v := j.judged(t, 2*time.Minute)
	if len(v.Bad) != want["bad_key"] {
		t.Errorf("the subject of %q is not the key; want that of the %d keys that are no text, or too long for a header", v.Bad, want["bad_key"])
	}
	if v.Bad = nil; !v.Clean() {
		t.Errorf("%s", v)
	}
	if diff := cmp.Diff(want, j.deadReasons(t, want)); diff != "" {
		t.Errorf("dead letters by reason (-want +got):\n%s", diff)
	}
	if most := peakMemory(t, w); most > 1<<30 {
		t.Errorf("the worker held %d MiB at its most", most>>20)
	}
	if n := len(w.Lines("quarantined")); n != 0 {
		t.Errorf("%d keys were quarantined", n)
	}
	if code := w.Terminate(40 * time.Second); code != 0 {
		t.Errorf("drain: exit code %d", code)
	}
}

// deadReasons counts the dead letters by reason.
func (j *job) deadReasons(t *testing.T, want map[string]int) map[string]int {
	t.Helper()
	cl := j.stack.Client(t, kgo.ConsumeTopics(j.prefix+".dead-letter"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	got := map[string]int{}
	ctx := stand.Limit(t, time.Minute)
	for !maps.Equal(got, want) && ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			for _, h := range r.Headers {
				if h.Key == stream.HeaderReason {
					got[string(h.Value)]++
				}
			}
		})
	}
	return got
}

// peakMemory is the most that a process has held so far, in bytes.
func peakMemory(t *testing.T, p *stand.Process) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		t.Logf("memory is not measured: %v", err)
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kib), "kB")), 10, 64)
			must(t, err)
			t.Logf("the worker held %d MiB at its most", n>>10)
			return n << 10
		}
	}
	return 0
}
