package commit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"

	"milepost/internal/stream"
)

// Checkpoint is a key's durable state after a commit.
type Checkpoint struct {
	Revision stream.Revision // of the observation that made it; zero: never seen
	Segment  int64           // unbroken stretch of the key's history, 0 before the first
	State    []byte          // the workload's bytes, versioned by the workload
}

// Output is one record to publish, byte for byte.
type Output struct {
	Topic   string
	Key     []byte
	Value   []byte
	Headers []stream.Header
}

// Size is what the output counts against byte bounds.
func (o *Output) Size() int64 {
	n := len(o.Topic) + len(o.Key) + len(o.Value)
	for _, h := range o.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return int64(n)
}

// Plan is what a decision does to a key: pure, made by the workload. Several of a run make one: see Commit.Earlier.
type Plan struct {
	Next    Checkpoint
	Outputs []Output
	Earlier []int64
	// Terminal and Reset are the reasons of the terminal that it is and of the reset that it carries, for statistics; empty: none.
	Terminal, Reset string
}

// ID tells whether two commits are the same: a digest over everything that a commit writes.
type ID [16]byte

// String gives the id in hexadecimal.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Commit is one decision on its way to becoming durable.
type Commit struct {
	Tenure *Tenure
	ID     ID
	Key    stream.Key
	// Revision is the observation's; of a run of several, the last one's. With a row it equals Next.Revision.
	Revision stream.Revision
	// Earlier are the offsets of a run's other observations, ascending: what comes of each is among the outputs, in this order.
	Earlier []int64
	// Base is the revision that the stored row must have (I5); zero: no row.
	Base    stream.Revision
	Next    Checkpoint
	Outputs []Output
	// NoRow marks a dead letter: it has no checkpoint, skips prepare and is entered in the ledger by offset.
	NoRow bool
	// Deferred marks a commit that is published without having been prepared: its checkpoint is persisted later, and until
	// then the ledger alone speaks for it (mode deferred).
	Deferred bool
	// Released marks a commit of an observation that stands in quarantine: it may be below the frontier without having
	// been published. A store sets it where it lists prepared commits.
	Released bool
}

// NewCommit makes the commit of a plan over base and gives it its ID.
func NewCommit(t *Tenure, key stream.Key, base stream.Revision, p Plan) Commit {
	c := Commit{Tenure: t, Key: key, Revision: p.Next.Revision, Earlier: p.Earlier, Base: base, Next: p.Next, Outputs: p.Outputs}
	c.ID = c.digest()
	return c
}

// NewDeadLetter makes the commit of a poison record's dead letter: published and entered in the
// ledger by offset, without a checkpoint.
func NewDeadLetter(t *Tenure, key stream.Key, rev stream.Revision, o Output) Commit {
	c := Commit{Tenure: t, Key: key, Revision: rev, Outputs: []Output{o}, NoRow: true}
	c.ID = c.digest()
	return c
}

// Offsets are those of the commit's observations, in order.
func (c *Commit) Offsets() []int64 {
	return append(slices.Clone(c.Earlier), c.Revision.Offset)
}

// Size is what the commit counts against byte bounds.
func (c *Commit) Size() int64 {
	n := int64(len(c.Key) + len(c.Next.State) + 8*len(c.Earlier) + 128)
	for i := range c.Outputs {
		n += c.Outputs[i].Size()
	}
	return n
}

func (c *Commit) digest() ID {
	h := sha256.New()
	writeBytes(h, []byte(c.Key))
	writeRevision(h, c.Revision)
	for _, offset := range c.Earlier {
		writeInt(h, offset)
	}
	writeRevision(h, c.Base)
	writeInt(h, c.Next.Segment)
	writeBytes(h, c.Next.State)
	d := OutputsDigest(c.Outputs)
	writeBytes(h, d[:])
	return ID(h.Sum(nil)[:16])
}

// OutputsDigest is the digest of a commit's outputs that its ledger entry carries. The epoch header is left
// out: the same decision made again by a later owner has the same digest.
func OutputsDigest(outputs []Output) ID {
	h := sha256.New()
	for _, o := range outputs {
		writeBytes(h, []byte(o.Topic))
		writeBytes(h, o.Key)
		writeBytes(h, o.Value)
		for _, x := range o.Headers {
			if x.Key != stream.HeaderEpoch {
				writeBytes(h, []byte(x.Key))
				writeBytes(h, x.Value)
			}
		}
	}
	return ID(h.Sum(nil)[:16])
}

func writeInt(h hash.Hash, v int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(v))
	h.Write(b[:])
}

func writeBytes(h hash.Hash, b []byte) {
	writeInt(h, int64(len(b)))
	h.Write(b)
}

func writeRevision(h hash.Hash, r stream.Revision) {
	writeInt(h, int64(r.Generation))
	writeInt(h, r.Offset)
}
