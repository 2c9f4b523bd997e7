package fleet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"milepost/internal/roadnet"
	"milepost/internal/wire"
)

// stateVersion is the first byte of a checkpoint's state.
const stateVersion = 1

// errForeignState says that a checkpoint's bytes are not a vehicle state of this version.
var errForeignState = errors.New("not a vehicle state of this version")

// vehicleState is a vehicle's checkpoint state, decoded.
type vehicleState struct {
	lastEvent    time.Time // of the newest observation taken; zero: none
	served       time.Time // of the newest one that a solver saw in this stretch; zero: none
	servedAt     roadnet.Point
	pin          pin    // its graph is the matcher state's
	matcher      []byte // nil: no open stretch
	nextFinal    int64  // first observation number that is not final
	nextSeq      int64  // first observation number not used
	pendingReset string
}

// encode gives the state's bytes: version, message, CRC32C of both.
func (s *vehicleState) encode() ([]byte, error) {
	m := &wire.VehicleState{
		LastEventUs: s.lastEvent.UnixMicro(), Graph: s.pin.graph, Matcher: s.matcher,
		NextFinal: s.nextFinal, NextSeq: s.nextSeq, PendingReset: s.pendingReset,
		Region: s.pin.region, CatalogVersion: s.pin.version,
	}
	if !s.served.IsZero() {
		m.ServedUs = new(s.served.UnixMicro())
		m.ServedLonE7, m.ServedLatE7 = e7(s.servedAt.Lon), e7(s.servedAt.Lat)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{stateVersion}, m)
	if err != nil {
		return nil, fmt.Errorf("encode vehicle state: %w", err)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))), nil
}

func decodeState(b []byte) (*vehicleState, error) {
	if len(b) < 5 || b[0] != stateVersion {
		return nil, errForeignState
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) != sum {
		return nil, fmt.Errorf("%w: checksum differs", errForeignState)
	}
	m := &wire.VehicleState{}
	if err := proto.Unmarshal(body[1:], m); err != nil {
		return nil, fmt.Errorf("%w: %w", errForeignState, err)
	}
	s := &vehicleState{
		lastEvent: time.UnixMicro(m.GetLastEventUs()).UTC(), nextFinal: m.GetNextFinal(), nextSeq: m.GetNextSeq(),
		pendingReset: m.GetPendingReset(),
		pin:          pin{version: m.GetCatalogVersion(), region: m.GetRegion(), graph: m.GetGraph()},
	}
	if len(m.GetMatcher()) > 0 {
		s.matcher = m.GetMatcher()
	}
	if m.ServedUs != nil {
		s.served = time.UnixMicro(m.GetServedUs()).UTC()
		s.servedAt = roadnet.Point{Lon: float64(m.GetServedLonE7()) / 1e7, Lat: float64(m.GetServedLatE7()) / 1e7}
	}
	return s, nil
}

// Tail gives what retention keeps of a state: the last event time, so that an expired key still refuses times that go
// back (A6). Bytes that are not a vehicle state give nil.
func Tail(state []byte) []byte {
	s, err := decodeState(state)
	if err != nil {
		return nil
	}
	b, err := (&vehicleState{lastEvent: s.lastEvent}).encode()
	if err != nil {
		return nil
	}
	return b
}

// WithPendingReset gives a state whose next commit announces a reset: a rebuilt history differs from the published one, or an operator
// asked for it. Bytes that are not a vehicle state stay as they are: they are a reset already (state lost).
func WithPendingReset(state []byte, reason string) []byte {
	s, err := decodeState(state)
	if err != nil {
		return state
	}
	s.pendingReset = reason
	b, err := s.encode()
	if err != nil {
		return state
	}
	return b
}

func e7(deg float64) int64 { return int64(math.Round(deg * 1e7)) }
