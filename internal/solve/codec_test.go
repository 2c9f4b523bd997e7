package solve

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/partition"
	"milepost/internal/stream"
)

func sampleJob() *job {
	return &job{
		id: partition.JobID{1, 2, 3}, raw: stream.Partition{Topic: "raw", Number: 4}, revision: stream.Revision{Generation: 2, Offset: 99},
		key: "v\xff1", region: "north", attempt: 3, replica: "r", request: []byte("bytes"),
	}
}

func sampleReplies() []*reply {
	of := func() *job {
		j := sampleJob()
		j.request, j.replica = nil, ""
		return j
	}
	return []*reply{
		{job: of(), replica: "r", via: 5, decision: partition.Decision{Kind: partition.Solved, Answer: []byte("a")}},
		{job: of(), replica: "r", decision: partition.Decision{Kind: partition.Solved, Answer: []byte("a"), More: [][]byte{[]byte("b"), {0}}}},
		{job: of(), replica: "r", decision: partition.Decision{Kind: partition.Reset, Reason: "gap"}},
		{job: of(), replica: "r", via: 5, missed: true},
		{job: of(), replica: "r", via: 5, failure: &failure{permanent: true, detail: "no"}},
	}
}

// A9: jobs and replies are read as they were written, keys that are no text too.
func TestRoundTrips(t *testing.T) {
	all := cmp.AllowUnexported(job{}, reply{}, failure{})
	b, err := encodeJob(sampleJob())
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeJob(b)
	if d := cmp.Diff(sampleJob(), got, all); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
	for _, want := range sampleReplies() {
		b, err := encodeReply(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeReply(b)
		if d := cmp.Diff(want, got, all); d != "" || err != nil {
			t.Errorf("%v %s", err, d)
		}
	}
}

// F31: a changed byte, another secret, another topic: none is vouched for. Without a secret everything is.
func TestSecret(t *testing.T) {
	s, value := Secret("k"), []byte("value")
	mac := s.sign("t", value)
	for name, err := range map[string]error{
		"value":  s.check("t", []byte("valuf"), mac),
		"topic":  s.check("u", value, mac),
		"moved":  s.check("tv", value[1:], mac),
		"secret": Secret("l").check("t", value, mac),
		"none":   s.check("t", value, nil),
	} {
		if !errors.Is(err, errForged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := errors.Join(s.check("t", value, mac), Secret(nil).check("t", value, nil)); err != nil {
		t.Error(err)
	}
}

func FuzzDecodeJob(f *testing.F) {
	b, err := encodeJob(sampleJob())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := decodeJob(b)
		if err == nil && len(j.request) == 0 {
			t.Error("a job without a request")
		}
		if err != nil && !errors.Is(err, errMalformed) {
			t.Error(err)
		}
	})
}

func FuzzDecodeReply(f *testing.F) {
	for _, r := range sampleReplies() {
		b, err := encodeReply(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeReply(b)
		if err != nil {
			if !errors.Is(err, errMalformed) {
				t.Error(err)
			}
			return
		}
		if res := r.result(); !res.TripMiss && res.Err == nil && (res.Decision.Kind < partition.Solved || res.Decision.Kind > partition.Reset) {
			t.Errorf("a result that says nothing: %+v", res)
		}
	})
}
