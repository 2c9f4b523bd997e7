package fleet

import (
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
	Identity    stream.Identity
	Key         stream.Key
	Base        stream.Revision // of the checkpoint that the job starts from
	Segment     int64           // that the observation falls in
	Graph       [32]byte
	Closing     []byte // matcher state to flush first; nil: none
	State       []byte // matcher state to go on from; nil: a new stretch
	Observation mapmatch.Observation
}

func encodeRequest(r *Request) ([]byte, error) {
	m := &wire.SolveRequest{
		Version: solveVersion,
		Topic:   r.Identity.Partition.Topic, Partition: r.Identity.Partition.Number,
		TopicGeneration: r.Identity.Revision.Generation, Offset: r.Identity.Revision.Offset,
		Key: string(r.Key), BaseGeneration: r.Base.Generation, BaseOffset: r.Base.Offset, Segment: r.Segment,
		Graph: r.Graph[:], Closing: r.Closing, State: r.State,
		Observation: &wire.Fix{
			TimeUs: r.Observation.Time.UnixMicro(), Lon: r.Observation.Point.Lon, Lat: r.Observation.Point.Lat,
			AccuracyM: given(r.Observation.AccuracyM), SpeedMps: given(r.Observation.SpeedMPS), HeadingDeg: given(r.Observation.Heading),
		},
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
	o := m.GetObservation()
	return &Request{
		Identity: stream.Identity{
			Partition: stream.Partition{Topic: m.GetTopic(), Number: m.GetPartition()},
			Revision:  stream.Revision{Generation: m.GetTopicGeneration(), Offset: m.GetOffset()},
		},
		Key: stream.Key(m.GetKey()), Base: stream.Revision{Generation: m.GetBaseGeneration(), Offset: m.GetBaseOffset()},
		Segment: m.GetSegment(), Graph: [32]byte(m.GetGraph()), Closing: orNil(m.GetClosing()), State: orNil(m.GetState()),
		Observation: mapmatch.Observation{
			Time: time.UnixMicro(o.GetTimeUs()).UTC(), Point: roadnet.Point{Lon: o.GetLon(), Lat: o.GetLat()},
			AccuracyM: orNaN(o.AccuracyM), SpeedMPS: orNaN(o.SpeedMps), Heading: orNaN(o.HeadingDeg),
		},
	}, nil
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
