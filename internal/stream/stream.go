package stream

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// Key is the unit of order: Kafka's record key, a vehicle or a session.
type Key string

// Partition names one partition of one topic.
type Partition struct {
	Topic  string
	Number int32
}

// String gives topic/number, as Kafka's tools print it.
func (p Partition) String() string { return p.Topic + "/" + strconv.Itoa(int(p.Number)) }

// Revision is (topic generation, offset): the only order that commits know. Revisions of
// different partitions are never compared. The zero Revision means "none": generations start at 1.
type Revision struct {
	Generation int32 // of the topic, not of the consumer group
	Offset     int64
}

// IsZero reports whether the revision is "none".
func (r Revision) IsZero() bool { return r.Generation == 0 }

// Compare orders by topic generation, then by offset.
func (r Revision) Compare(o Revision) int {
	return cmp.Or(cmp.Compare(r.Generation, o.Generation), cmp.Compare(r.Offset, o.Offset))
}

// Covers reports whether state at revision r already contains the observation at o.
func (r Revision) Covers(o Revision) bool { return !r.IsZero() && r.Compare(o) >= 0 }

// String gives generation.offset, the form of the ce_revision header; "none" for the zero value.
func (r Revision) String() string {
	if r.IsZero() {
		return "none"
	}
	return fmt.Sprintf("%d.%d", r.Generation, r.Offset)
}

// Frontier is the next offset to do: everything below it is durably done (Kafka's convention for
// a committed offset). LeaderEpoch is the one under which the record below it was read, -1 unknown.
type Frontier struct {
	Next        Revision
	LeaderEpoch int32
}

// String gives the revision and, where known, the leader epoch.
func (f Frontier) String() string {
	if f.LeaderEpoch < 0 {
		return f.Next.String()
	}
	return fmt.Sprintf("%s@%d", f.Next, f.LeaderEpoch)
}

// Epoch is the ownership epoch: the fencing number of a partition's owner. Postgres issues it; it
// grows by one at each acquisition, for ever. It is not the group's generation.
type Epoch int64

// Nonce tells two tenures apart even where the epoch numbers are equal (a restored database).
type Nonce [16]byte

// String gives the nonce in hexadecimal.
func (n Nonce) String() string { return hex.EncodeToString(n[:]) }

// Header is one record header.
type Header struct {
	Key   string
	Value []byte
}

// Record is a raw record as it was fetched.
type Record struct {
	Partition   Partition
	Offset      int64
	LeaderEpoch int32
	Timestamp   time.Time // Kafka's, the only clock that decisions may use (I16)
	Key         []byte
	Value       []byte // nil: a null value
	Headers     []Header
	// Unreadable says why key, value and headers could not be had, though the log has a record here. Empty: they are what they are.
	Unreadable string
}

// Size is what the record counts against byte bounds.
func (r *Record) Size() int64 {
	n := len(r.Key) + len(r.Value) + 64
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return int64(n)
}

// Identity is where an observation comes from; it names every output made of it.
type Identity struct {
	Partition Partition
	Revision  Revision
}

// OutputID is the CloudEvents id of the observation's output number index:
// <raw topic>/<topic generation>/<partition>/<offset>/<index>.
func (i Identity) OutputID(index int) string {
	return fmt.Sprintf("%s/%d/%d/%d/%d", i.Partition.Topic, i.Revision.Generation, i.Partition.Number, i.Revision.Offset, index)
}
