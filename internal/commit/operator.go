package commit

import (
	"context"

	"milepost/internal/stream"
)

// RequestKind is what an operator may ask of a partition's owner.
type RequestKind string

// The kinds of requests.
const (
	RequestRelease RequestKind = "release" // replay a key's quarantined observations in order
	RequestDiscard RequestKind = "discard" // give them up for good
	RequestSeek    RequestKind = "seek"    // move the frontier forward
)

// Request is what an operator asks of a partition's owner.
type Request struct {
	ID        int64
	Partition stream.Partition
	Kind      RequestKind
	Key       stream.Key // of release and discard
	Offset    int64      // of seek
}

// Answer ends a request.
type Answer struct {
	Request int64
	Failed  bool
	Outcome string // for people; no payload
}

// Aside is an observation that is in quarantine.
type Aside struct {
	Revision stream.Revision
	Record   stream.Record
}

// Discarded is what a discard did.
type Discarded struct {
	Rows int
	// Until is the highest revision that the key's tombstones have: what is at or below it is done. Zero: none.
	Until stream.Revision
}

// Operations is what a partition's owner needs to execute operators' requests. Every write is fenced like Store's.
type Operations interface {
	// Requests lists the requests that wait for the partitions, oldest first, at most limit.
	Requests(ctx context.Context, group string, partitions []stream.Partition, limit int) ([]Request, error)
	// Answer ends a request that still waits; one that does not any more is success.
	Answer(ctx context.Context, t *Tenure, a Answer) error
	// Asides reads a key's quarantined observations after a revision in their order, at most limit; without
	// those that were discarded and those that the key's checkpoint covers.
	Asides(ctx context.Context, t *Tenure, key stream.Key, after stream.Revision, limit int) ([]Aside, error)
	// Discard makes tombstones of a key's quarantined observations, which last until the frontier has passed them
	// and the ledger floor has come to floor. A commit that stands prepared for one of them goes too.
	Discard(ctx context.Context, t *Tenure, key stream.Key, floor int64) (Discarded, error)
	// Seek moves the partition's frontier forward to an offset and ends the request, in one statement. It reports
	// false, and changes nothing, where the request no longer waits or the frontier is not below the offset.
	Seek(ctx context.Context, t *Tenure, request int64, to stream.Revision, outcome string) (bool, error)
	// Lose moves the frontier forward over observations that the log lost, and makes keys whose checkpoint is of a lower revision begin
	// anew with a reset of the reason, in one statement. It reports false, and changes nothing, where the frontier is not below.
	Lose(ctx context.Context, t *Tenure, to stream.Revision, reason string) (bool, error)
	// Sweep deletes tombstones that frontier and floor have passed, and quarantine rows that checkpoints cover.
	Sweep(ctx context.Context, t *Tenure) error
}
