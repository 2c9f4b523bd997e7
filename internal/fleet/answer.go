package fleet

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
	"milepost/internal/wire"
)

// answer is what a solver found, before it is encoded.
type answer struct {
	state       []byte
	change      mapmatch.Result
	closed      *mapmatch.Result // of the closing stretch
	closingLost bool             // the closing stretch's state could not be read
	stateLost   bool             // nor the one to go on from: a new stretch was begun
}

func encodeAnswer(a *answer) ([]byte, error) {
	m := &wire.SolveAnswer{
		Version: solveVersion, State: a.state, Change: wireChange(&a.change), ClosingLost: a.closingLost, StateLost: a.stateLost,
	}
	if a.closed != nil {
		m.Closed = wireChange(a.closed)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode solve answer: %w", err)
	}
	return b, nil
}

func decodeAnswer(b []byte) (*wire.SolveAnswer, error) {
	m := &wire.SolveAnswer{}
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("decode solve answer: %w", err)
	}
	if m.GetVersion() != solveVersion || m.GetChange() == nil {
		return nil, fmt.Errorf("decode solve answer: version %d or an incomplete message", m.GetVersion())
	}
	return m, nil
}

func wireChange(r *mapmatch.Result) *wire.SolvedChange {
	m := &wire.SolvedChange{
		Seq: r.Seq, Disposition: uint32(r.Disposition), Break: uint32(r.Break), Supersedes: r.Supersedes, AccuracyClamped: r.AccuracyClamped,
		Path: wireSpans(r.Path), FinalPath: wireSpans(r.FinalPath),
	}
	if r.Provisional != nil {
		m.Provisional = wirePosition(r.Provisional)
	}
	for i := range r.FinalPoints {
		m.FinalPoints = append(m.FinalPoints, wirePosition(&r.FinalPoints[i]))
	}
	return m
}

func wirePosition(p *mapmatch.Position) *wire.SolvedPosition {
	return &wire.SolvedPosition{
		Seq: p.Seq, TimeUs: p.Time.UnixMicro(), Way: p.Key.Way, From: p.Key.From, To: p.Key.To, OffsetMm: milli(p.OffsetM),
		LonE7: e7(p.Snapped.Lon), LatE7: e7(p.Snapped.Lat), HeadingDdeg: int32(math.Round(p.Heading*10)) % 3600,
		ConfidencePm: uint32(min(max(milli(p.Confidence), 0), 1000)), Disposition: uint32(p.Disposition),
	}
}

func milli(x float64) int64 { return int64(math.Round(x * 1000)) }

func wireSpans(spans []mapmatch.Span) []*wire.SolvedSpan {
	out := make([]*wire.SolvedSpan, 0, len(spans))
	for i := range spans {
		s := &spans[i]
		m := &wire.SolvedSpan{
			Way: s.Key.Way, From: s.Key.From, To: s.Key.To, FromMm: milli(s.FromM), ToMm: milli(s.ToM),
			StartUs: s.Start.UnixMicro(), EndUs: s.End.UnixMicro(), Inferred: s.Inferred, Entered: uint32(s.Entered), Private: s.Private, Contraflow: s.Contraflow,
		}
		last := int64(0)
		for _, n := range s.Nodes {
			m.Nodes, last = append(m.Nodes, n-last), n
		}
		var lon, lat int64
		for _, p := range s.Geometry {
			x, y := e7(p.Lon), e7(p.Lat)
			m.Geometry = append(m.Geometry, x-lon, y-lat)
			lon, lat = x, y
		}
		out = append(out, m)
	}
	return out
}

func eventPosition(m *wire.SolvedPosition) (Position, error) {
	d, err := dispositionOf(mapmatch.Disposition(min(m.GetDisposition(), math.MaxUint8)))
	if err != nil {
		return Position{}, err
	}
	p := Position{Seq: m.GetSeq(), Time: microTime(m.GetTimeUs()), Disposition: d}
	if m.GetWay() != 0 || m.GetFrom() != 0 || m.GetTo() != 0 { // the zero edge key is "none" (M47)
		p.Place = &Place{
			Way: m.GetWay(), From: m.GetFrom(), To: m.GetTo(), OffsetM: float64(m.GetOffsetMm()) / 1000,
			Lon: degrees(m.GetLonE7()), Lat: degrees(m.GetLatE7()),
			HeadingDeg: float64(m.GetHeadingDdeg()) / 10, Confidence: float64(m.GetConfidencePm()) / 1000,
		}
	}
	return p, nil
}

func eventSpans(ms []*wire.SolvedSpan) ([]Span, error) {
	spans := make([]Span, 0, len(ms))
	for _, m := range ms {
		s := Span{
			Way: m.GetWay(), From: m.GetFrom(), To: m.GetTo(), FromM: float64(m.GetFromMm()) / 1000, ToM: float64(m.GetToMm()) / 1000,
			Start: microTime(m.GetStartUs()), End: microTime(m.GetEndUs()), Inferred: m.GetInferred(),
			Private: m.GetPrivate(), Contraflow: m.GetContraflow(),
		}
		var err error
		if s.Entered, err = enteredOf(roadnet.Turn(min(m.GetEntered(), math.MaxUint8))); err != nil {
			return nil, err
		}
		node := int64(0)
		for _, d := range m.GetNodes() {
			node += d
			s.Nodes = append(s.Nodes, node)
		}
		g := m.GetGeometry()
		if len(g)%2 != 0 {
			return nil, fmt.Errorf("a span's geometry has %d numbers", len(g))
		}
		var lon, lat int64
		for i := 0; i < len(g); i += 2 {
			lon, lat = lon+g[i], lat+g[i+1]
			s.Geometry = append(s.Geometry, [2]float64{degrees(lon), degrees(lat)})
		}
		spans = append(spans, s)
	}
	return spans, nil
}

func degrees(e7 int64) float64 { return float64(e7) / 1e7 }

func microTime(us int64) time.Time { return time.UnixMicro(us).UTC() }
