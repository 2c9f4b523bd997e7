package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
	"milepost/internal/stream"
)

func sampleState() *vehicleState {
	return &vehicleState{
		lastEvent: time.Date(2026, 3, 1, 8, 0, 0, 123_456_000, time.UTC), served: time.Date(1969, 3, 1, 8, 0, 0, 0, time.UTC),
		servedAt: roadnet.Point{Lon: -75.1234567, Lat: 39.7}, pin: pin{version: 12, region: "north", graph: bytes.Repeat([]byte{3}, 32)}, matcher: []byte("state"),
		nextFinal: 4, nextSeq: 9, pendingReset: ResetOperator,
	}
}

// The checkpoint codec gives back what it took, for full and empty states (I16: the same bytes each time).
func TestStateRoundTrip(t *testing.T) {
	for _, s := range []*vehicleState{sampleState(), {}, {lastEvent: time.UnixMicro(0).UTC()}} {
		b, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.encode()
		if err != nil || !bytes.Equal(b, again) {
			t.Errorf("encoded twice: %x, %x, %v", b, again, err)
		}
		got, err := decodeState(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(s, got, cmp.AllowUnexported(vehicleState{}, pin{})); d != "" {
			t.Error(d)
		}
	}
}

// A5: every byte of a state that changes, and every cut, makes it unreadable; never another state.
func TestDamagedStateIsForeign(t *testing.T) {
	b, err := sampleState().encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		bad := bytes.Clone(b)
		bad[i] ^= 0x10
		if _, err := decodeState(bad); !errors.Is(err, errForeignState) {
			t.Errorf("byte %d changed: got %v", i, err)
		}
		if _, err := decodeState(b[:i]); !errors.Is(err, errForeignState) {
			t.Errorf("cut to %d bytes: got %v", i, err)
		}
	}
	if got := WithPendingReset([]byte("junk"), ResetOperator); string(got) != "junk" {
		t.Errorf("junk became %q", got)
	}
	if Tail([]byte("junk")) != nil {
		t.Error("junk has a tail")
	}
}

func FuzzDecodeState(f *testing.F) {
	b, err := sampleState().encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{stateVersion, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeState(b)
		if err != nil {
			if !errors.Is(err, errForeignState) {
				t.Errorf("got %v", err)
			}
			return
		}
		if _, err := s.encode(); err != nil {
			t.Errorf("decoded but not encoded: %v", err)
		}
	})
}

func sampleRequest() *Request {
	return &Request{
		Identity: stream.Identity{Partition: stream.Partition{Topic: "raw", Number: 3}, Revision: stream.Revision{Generation: 2, Offset: 77}},
		Key:      "v1", Base: stream.Revision{Generation: 1, Offset: 5}, Segment: 4, Region: "north", Graph: [32]byte{9},
		Closing: []byte("old"), ClosingGraph: [32]byte{8}, State: []byte("new"),
		Seed: &mapmatch.Observation{Time: time.UnixMicro(5).UTC(), Point: roadnet.Point{Lon: 1}, AccuracyM: math.NaN(), SpeedMPS: 3, Heading: math.NaN()},
		Observation: mapmatch.Observation{
			Time: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC), Point: roadnet.Point{Lon: 0.1, Lat: math.Nextafter(50, 51)},
			AccuracyM: 0, SpeedMPS: math.NaN(), Heading: 12,
		},
	}
}

// sampleRun is a request of several observations.
func sampleRun() *Request {
	r := sampleRequest()
	r.More = []Next{{Offset: 79, Observation: r.Observation}, {Offset: 80, Observation: *r.Seed}}
	return r
}

// A9, F21: a request carries everything that decides, bit for bit; "not given" stays different from 0. A run out of order is refused.
func TestRequestRoundTrip(t *testing.T) {
	for _, want := range []*Request{sampleRequest(), sampleRun()} {
		b, err := encodeRequest(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeRequest(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateNaNs()); d != "" {
			t.Error(d)
		}
	}
	disordered := sampleRun()
	disordered.More[1].Offset = 79
	b, err := encodeRequest(disordered)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeRequest(b); err == nil {
		t.Error("a run out of order was read")
	}
}

func FuzzDecodeRequest(f *testing.F) {
	b, err := encodeRequest(sampleRun())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRequest(b)
		if err == nil && r.Observation.Time.Location() != time.UTC {
			t.Error("a time that is not UTC")
		}
	})
}

func sampleAnswer() *answer {
	p := mapmatch.Position{
		Seq: 7, Time: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC), Key: roadnet.EdgeKey{Way: 11, From: 2, To: 1}, OffsetM: 12.3456,
		Snapped: roadnet.Point{Lon: -180, Lat: 89.99999994}, Heading: 359.97, Confidence: 0.987, Disposition: mapmatch.Standing,
	}
	s := mapmatch.Span{
		Key: p.Key, FromM: 0, ToM: 12.3456, Start: p.Time, End: p.Time.Add(time.Second), Nodes: []int64{2, 8_000_000_000, 1},
		Geometry: []roadnet.Point{{Lon: 180, Lat: 1}, {Lon: -180, Lat: 1.0000001}}, Inferred: true, Entered: roadnet.TurnU,
		Private: true, Contraflow: true,
	}
	r := mapmatch.Result{
		Seq: 7, Disposition: mapmatch.Matched, Break: mapmatch.BreakJump, Provisional: &p, Supersedes: 6, AccuracyClamped: true, Path: []mapmatch.Span{s},
		FinalPoints: []mapmatch.Position{p, {Seq: 8, Time: p.Time, Disposition: mapmatch.OffRoad}}, FinalPath: []mapmatch.Span{s, s},
	}
	return &answer{state: []byte("next"), change: r, closed: &r, stateLost: true}
}

// Answers keep positions to a millimetre and 1e-7 degrees, node ids exactly, and the absent edge absent (M47).
func TestAnswerRoundTrip(t *testing.T) {
	b, err := encodeAnswer(sampleAnswer())
	if err != nil {
		t.Fatal(err)
	}
	m, err := decodeAnswer(b)
	if err != nil {
		t.Fatal(err)
	}
	points, err := finalPoints(m.GetChange().GetFinalPoints(), 7)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	want := []Position{
		{Seq: 7, Time: at, Disposition: Standing, Place: &Place{
			Way: 11, From: 2, To: 1, OffsetM: 12.346, Lon: -180, Lat: 89.9999999, HeadingDeg: 0, Confidence: 0.987,
		}},
		{Seq: 8, Time: at, Disposition: OffRoad},
	}
	if d := cmp.Diff(want, points); d != "" {
		t.Error(d)
	}
	spans, err := eventSpans(m.GetChange().GetFinalPath())
	if err != nil {
		t.Fatal(err)
	}
	wantSpan := Span{
		Way: 11, From: 2, To: 1, ToM: 12.346, Start: at, End: at.Add(time.Second), Nodes: []int64{2, 8_000_000_000, 1},
		Geometry: [][2]float64{{180, 1}, {-180, 1.0000001}}, Inferred: true, Entered: EnteredUTurn, Private: true, Contraflow: true,
	}
	if d := cmp.Diff([]Span{wantSpan, wantSpan}, spans); d != "" {
		t.Error(d)
	}
	if !m.GetStateLost() || m.GetClosingLost() || m.GetClosed() == nil || string(m.GetState()) != "next" {
		t.Errorf("got %v", m)
	}
	if _, err := finalPoints(m.GetChange().GetFinalPoints(), 8); err == nil {
		t.Error("number 7 became final again after it was final (I9)")
	}
}

// A10: no answer, however malformed, panics on its way into an event; it is an error or it is well-formed.
func FuzzAnswer(f *testing.F) {
	b, err := encodeAnswer(sampleAnswer())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeAnswer(b)
		if err != nil {
			return
		}
		p := planner{w: &Workload{atlas: OneMap(Map{})}, event: Event{Schema: EventSchema, Time: time.UnixMicro(1)}}
		if _, err := p.change(&judgement{state: &vehicleState{}}, m.GetChange(), false); err != nil {
			return
		}
		if err := p.provisional(&judgement{}, m.GetChange()); err != nil {
			return
		}
		if b := p.event.AppendJSON(nil); !json.Valid(b) {
			t.Errorf("no JSON: %s", b)
		}
	})
}

// The hand-written JSON says what the field tags say: the standard library's encoding of the same event is equal as a value.
func TestEventJSONAgreesWithTags(t *testing.T) {
	seq, from := int64(0), int64(3)
	at := time.Date(2026, 3, 1, 8, 0, 0, 500_000_000, time.UTC)
	pos := Position{Seq: 2, Time: at, Disposition: Matched, Place: &Place{Way: 1, From: 2, To: 3}}
	span := Span{Way: 1, From: 2, To: 3, ToM: 1.5, Start: at, End: at, Nodes: []int64{2, 3}, Geometry: [][2]float64{{1, 2}, {1.5, -2}}, Inferred: true, Private: true, Contraflow: true, Entered: EnteredUTurn}
	for _, e := range []Event{
		{Schema: EventSchema, ID: "a\"b<é\n", Vehicle: "v", Time: at, Disposition: TerminalInternal},
		{
			Schema: EventSchema, Segment: 2, Revision: "1.2", Time: at, Lon: 1e-7, Lat: -89.5, Disposition: Matched, Graph: "00ff", AccuracyClamped: true,
			Reset: &SegmentReset{Reason: ResetGap, PreviousSegment: 1}, Closed: &Final{Segment: 1, Points: []Position{pos, {Time: at}}, Path: []Span{span, span}},
			Retracted: &Retraction{Segment: 1, FromSeq: &from}, Seq: &seq, Supersedes: &seq, Provisional: &pos, Path: []Span{span}, Final: &Final{Segment: 2},
		},
	} {
		type plain Event // without the method
		want, err := json.Marshal((*plain)(&e))
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if err := errors.Join(json.Unmarshal(want, &a), json.Unmarshal(e.AppendJSON(nil), &b)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(a, b); d != "" {
			t.Errorf("standard library and AppendJSON differ: %s", d)
		}
		got, err := DecodeEvent(e.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(e, got); d != "" {
			t.Error(d)
		}
	}
	if _, err := DecodeEvent([]byte(`{"schema":2}`)); err == nil {
		t.Error("an event of another schema was read")
	}
}

func FuzzDecodeEvent(f *testing.F) {
	f.Add([]byte(`{"schema":1,"time":"2026-01-02T03:04:05Z","provisional":{"seq":1,"time":"2026-01-02T03:04:05Z","way":1},"path":[{"nodes":[1],"geometry":[[1,2]]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeEvent(b)
		if err != nil {
			return
		}
		if out := e.AppendJSON(nil); !json.Valid(out) {
			t.Errorf("%s became %s", b, out)
		}
	})
}

// Coverage is right across the antimeridian and near the poles (M26, M25): no wrap, no division by zero.
func TestCovers(t *testing.T) {
	pt := func(lon, lat float64) roadnet.Point { return roadnet.Point{Lon: lon, Lat: lat} }
	for _, c := range []struct {
		sw, ne, p roadnet.Point
		want      bool
	}{
		{pt(1, 1), pt(2, 2), pt(1.5, 1.5), true},
		{pt(1, 1), pt(2, 2), pt(2.0005, 1.5), true}, // 56 m outside
		{pt(1, 1), pt(2, 2), pt(2.002, 1.5), false},
		{pt(1, 1), pt(2, 2), pt(1.5, 0.998), false},
		{pt(179, -1), pt(-179, 1), pt(180, 0), true},
		{pt(179, -1), pt(-179, 1), pt(-179.5, 0), true},
		{pt(179, -1), pt(-179, 1), pt(0, 0), false},
		{pt(179, -1), pt(180, 1), pt(-179.9995, 0), true},
		{pt(179, -1), pt(180, 1), pt(-179.9, 0), false},
		{pt(-10, 89), pt(10, 90), pt(0, 89.9999), true},
		{pt(-10, 89), pt(10, 90), pt(170, 89.9999), false},
	} {
		m := Map{SouthWest: c.sw, NorthEast: c.ne}
		if got := m.covers(c.p, 100); got != c.want {
			t.Errorf("%v in %v to %v: got %v", c.p, c.sw, c.ne, got)
		}
	}
}
