package fleet

import (
	"crypto/sha256"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
	"milepost/internal/stream"
	"milepost/internal/wire"
)

// solveVersion is the version of requests and answers.
const solveVersion = 1

// Request is what a solver is asked: everything that decides the answer, and the identity of the job.
type Request struct {
	Identity stream.Identity
	Key      stream.Key
	Base     stream.Revision // of the checkpoint that the job starts from
	Segment  int64           // that the observation falls in
	Region   string
	Graph    [32]byte // the region's
	Closing  []byte   // matcher state to flush first; nil: none
	// ClosingGraph is the closing stretch's: another one where the vehicle has just been moved.
	ClosingGraph [32]byte
	Seed         *mapmatch.Observation // last of the closing stretch, for a new one on another graph to begin with; nil: none
	State        []byte                // matcher state to go on from; nil: a new stretch
	StateDigest  []byte                // of the state, in a request that is without it; nil: the request is whole
	Observation  mapmatch.Observation
	More         []Next // that follow at once, each over the state that the one before makes
}

// last is the revision of the run's last observation, if so many of it are solved.
func (r *Request) last(solved int) stream.Revision {
	at := r.Identity.Revision
	if solved > 1 {
		at.Offset = r.More[solved-2].Offset
	}
	return at
}

func encodeRequest(r *Request) ([]byte, error) {
	m := &wire.SolveRequest{
		Version: solveVersion,
		Topic:   r.Identity.Partition.Topic, Partition: r.Identity.Partition.Number,
		TopicGeneration: r.Identity.Revision.Generation, Offset: r.Identity.Revision.Offset,
		Key: string(r.Key), BaseGeneration: r.Base.Generation, BaseOffset: r.Base.Offset, Segment: r.Segment,
		Region: r.Region, Graph: r.Graph[:], Closing: r.Closing, State: r.State, Observation: wireFix(&r.Observation),
	}
	if r.Closing != nil && r.ClosingGraph != r.Graph {
		m.ClosingGraph = r.ClosingGraph[:]
	}
	m.StateDigest = r.StateDigest
	if r.Seed != nil {
		m.Seed = wireFix(r.Seed)
	}
	for i := range r.More {
		m.More = append(m.More, &wire.NextFix{Offset: r.More[i].Offset, Observation: wireFix(&r.More[i].Observation)})
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode solve request: %w", err)
	}
	return b, nil
}

// DecodeRequest reads a solve request.
func DecodeRequest(b []byte) (*Request, error) {
	m := &wire.SolveRequest{}
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("decode solve request: %w", err)
	}
	if m.GetVersion() != solveVersion || len(m.GetGraph()) != 32 || m.GetObservation() == nil {
		return nil, fmt.Errorf("decode solve request: version %d or an incomplete message", m.GetVersion())
	}
	r := &Request{
		Identity: stream.Identity{
			Partition: stream.Partition{Topic: m.GetTopic(), Number: m.GetPartition()},
			Revision:  stream.Revision{Generation: m.GetTopicGeneration(), Offset: m.GetOffset()},
		},
		Key: stream.Key(m.GetKey()), Base: stream.Revision{Generation: m.GetBaseGeneration(), Offset: m.GetBaseOffset()},
		Segment: m.GetSegment(), Region: m.GetRegion(), Graph: [32]byte(m.GetGraph()), ClosingGraph: [32]byte(m.GetGraph()),
		Closing: orNil(m.GetClosing()), State: orNil(m.GetState()), Observation: fixOf(m.GetObservation()),
	}
	if g := m.GetClosingGraph(); r.Closing != nil && len(g) > 0 {
		if len(g) != len(r.ClosingGraph) {
			return nil, fmt.Errorf("decode solve request: the closing graph has %d bytes", len(g))
		}
		r.ClosingGraph = [32]byte(g)
	}
	if d := m.GetStateDigest(); len(d) > 0 {
		if len(d) != sha256.Size || r.State != nil {
			return nil, fmt.Errorf("decode solve request: a state digest of %d bytes beside a state of %d", len(d), len(r.State))
		}
		r.StateDigest = d
	}
	if m.GetSeed() != nil {
		r.Seed = new(fixOf(m.GetSeed()))
	}
	at := r.Identity.Revision.Offset
	for _, next := range m.GetMore() {
		if next.GetObservation() == nil || next.GetOffset() <= at {
			return nil, fmt.Errorf("decode solve request: offset %d of its run is incomplete or out of order", next.GetOffset())
		}
		at = next.GetOffset()
		r.More = append(r.More, Next{Offset: at, Observation: fixOf(next.GetObservation())})
	}
	return r, nil
}

func wireFix(o *mapmatch.Observation) *wire.Fix {
	return &wire.Fix{
		TimeUs: o.Time.UnixMicro(), Lon: o.Point.Lon, Lat: o.Point.Lat,
		AccuracyM: given(o.AccuracyM), SpeedMps: given(o.SpeedMPS), HeadingDeg: given(o.Heading),
	}
}

func fixOf(m *wire.Fix) mapmatch.Observation {
	return mapmatch.Observation{
		Time: time.UnixMicro(m.GetTimeUs()).UTC(), Point: roadnet.Point{Lon: m.GetLon(), Lat: m.GetLat()},
		AccuracyM: orNaN(m.AccuracyM), SpeedMPS: orNaN(m.SpeedMps), Heading: orNaN(m.HeadingDeg),
	}
}

func orNil(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

func given(x float64) *float64 {
	if math.IsNaN(x) {
		return nil
	}
	return &x
}

func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}
