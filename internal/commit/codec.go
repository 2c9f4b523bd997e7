package commit

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"milepost/internal/stream"
	"milepost/internal/wire"
)

// EncodeOutputs gives the bytes that a prepared row keeps of its commit: the outputs, and which observations they are of.
func EncodeOutputs(c *Commit) ([]byte, error) {
	m := &wire.PreparedOutputs{Outputs: make([]*wire.Output, 0, len(c.Outputs)), Earlier: c.Earlier}
	for _, o := range c.Outputs {
		m.Outputs = append(m.Outputs, &wire.Output{Topic: o.Topic, Key: o.Key, Value: o.Value, Headers: wireHeaders(o.Headers)})
	}
	return marshal(m)
}

// DecodeOutputs is the inverse of EncodeOutputs: it gives the outputs, and Commit.Earlier. An error is of class Permanent.
func DecodeOutputs(b []byte) (outputs []Output, earlier []int64, err error) {
	m := &wire.PreparedOutputs{}
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, nil, fmt.Errorf("decode prepared outputs: %w: %w", ErrPermanent, err)
	}
	outputs = make([]Output, 0, len(m.GetOutputs()))
	for _, o := range m.GetOutputs() {
		outputs = append(outputs, Output{Topic: o.GetTopic(), Key: o.GetKey(), Value: o.GetValue(), Headers: headers(o.GetHeaders())})
	}
	return outputs, m.GetEarlier(), nil
}

// EncodeEntries gives the value of one ledger record. All entries are of one group, topic, topic generation and epoch.
func EncodeEntries(entries []Entry) ([]byte, error) {
	m := &wire.LedgerRecord{}
	for i := range entries {
		e := &entries[i]
		m.Group, m.Topic, m.TopicGeneration, m.Epoch = e.Group, e.Topic, e.TopicGeneration, int64(e.Epoch)
		w := &wire.LedgerEntry{
			Key: []byte(e.Key), BaseGeneration: e.Base.Generation, BaseOffset: e.Base.Offset, Offsets: e.Offsets,
			Segment: e.Segment, Digest: e.Digest[:], DeadLetter: e.DeadLetter,
		}
		for _, l := range e.Landed {
			w.Landed = append(w.Landed, &wire.Landing{Topic: l.Topic, Partition: l.Partition, Offset: l.Offset})
		}
		m.Entries = append(m.Entries, w)
	}
	return marshal(m)
}

// DecodeEntries is the inverse of EncodeEntries. An error is of class Permanent.
func DecodeEntries(b []byte) ([]Entry, error) {
	m := &wire.LedgerRecord{}
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("decode ledger record: %w: %w", ErrPermanent, err)
	}
	entries := make([]Entry, 0, len(m.GetEntries()))
	for _, w := range m.GetEntries() {
		e := Entry{
			Group: m.GetGroup(), Topic: m.GetTopic(), TopicGeneration: m.GetTopicGeneration(), Epoch: stream.Epoch(m.GetEpoch()),
			Key: stream.Key(w.GetKey()), Base: stream.Revision{Generation: w.GetBaseGeneration(), Offset: w.GetBaseOffset()},
			Offsets: w.GetOffsets(), Segment: w.GetSegment(), DeadLetter: w.GetDeadLetter(),
		}
		if copy(e.Digest[:], w.GetDigest()) != len(e.Digest) {
			return nil, fmt.Errorf("decode ledger record: digest of key %q has %d bytes: %w", e.Key, len(w.GetDigest()), ErrPermanent)
		}
		for _, l := range w.GetLanded() {
			e.Landed = append(e.Landed, Landing{Topic: l.GetTopic(), Partition: l.GetPartition(), Offset: l.GetOffset()})
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// EntryOf is the ledger entry of a commit whose outputs landed there.
func EntryOf(c *Commit, landed []Landing) Entry {
	return Entry{
		Group: c.Tenure.Group, Topic: c.Tenure.Partition.Topic, TopicGeneration: c.Revision.Generation, Epoch: c.Tenure.Epoch,
		Key: c.Key, Base: c.Base, Offsets: c.Offsets(), Segment: c.Next.Segment, Digest: OutputsDigest(c.Outputs),
		DeadLetter: c.NoRow, Landed: landed,
	}
}

// EncodeRecord gives the bytes that a quarantine row keeps of a raw record.
func EncodeRecord(r *stream.Record) ([]byte, error) {
	return marshal(&wire.RawRecord{
		Topic: r.Partition.Topic, Partition: r.Partition.Number, Offset: r.Offset, LeaderEpoch: r.LeaderEpoch,
		TimestampMs: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value, NullValue: r.Value == nil, Headers: wireHeaders(r.Headers),
	})
}

// DecodeRecord is the inverse of EncodeRecord. An error is of class Permanent.
func DecodeRecord(b []byte) (stream.Record, error) {
	m := &wire.RawRecord{}
	if err := proto.Unmarshal(b, m); err != nil {
		return stream.Record{}, fmt.Errorf("decode raw record: %w: %w", ErrPermanent, err)
	}
	r := stream.Record{
		Partition: stream.Partition{Topic: m.GetTopic(), Number: m.GetPartition()}, Offset: m.GetOffset(), LeaderEpoch: m.GetLeaderEpoch(),
		Timestamp: time.UnixMilli(m.GetTimestampMs()).UTC(), Key: m.GetKey(), Value: m.GetValue(), Headers: headers(m.GetHeaders()),
	}
	if !m.GetNullValue() && r.Value == nil {
		r.Value = []byte{}
	}
	return r, nil
}

func marshal(m proto.Message) ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w: %w", m.ProtoReflect().Descriptor().Name(), ErrPermanent, err)
	}
	return b, nil
}

func wireHeaders(hs []stream.Header) []*wire.Header {
	out := make([]*wire.Header, 0, len(hs))
	for _, h := range hs {
		out = append(out, &wire.Header{Key: []byte(h.Key), Value: h.Value})
	}
	return out
}

func headers(ws []*wire.Header) []stream.Header {
	out := make([]stream.Header, 0, len(ws))
	for _, w := range ws {
		out = append(out, stream.Header{Key: string(w.GetKey()), Value: w.GetValue()})
	}
	return out
}
