package solve

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"milepost/internal/partition"
	"milepost/internal/stream"
	"milepost/internal/wire"
)

// version is the version of requests and replies on the topics.
const version = 1

// macHeader is the record header that proves who made a record, where a secret is set.
const macHeader = "milepost-mac"

// Reasons for which a record is dropped.
var (
	errMalformed = errors.New("malformed")
	errForged    = errors.New("not signed with the secret")
)

// job is a request as it travels.
type job struct {
	id       partition.JobID
	raw      stream.Partition
	revision stream.Revision
	key      stream.Key
	region   string
	attempt  int
	replica  string // set: without the trip, for this replica alone
	request  []byte
}

func encodeJob(j *job) ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(&wire.SolveJob{
		Version: version, Job: j.id[:], Topic: j.raw.Topic, Partition: j.raw.Number,
		TopicGeneration: j.revision.Generation, Offset: j.revision.Offset, Key: []byte(j.key), Region: j.region,
		Attempt: uint32(max(j.attempt, 0)), Replica: j.replica, Request: j.request,
	})
	if err != nil {
		return nil, fmt.Errorf("encode a job: %w", err)
	}
	return b, nil
}

func decodeJob(b []byte) (*job, error) {
	m := &wire.SolveJob{}
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("decode a job: %w: %w", errMalformed, err)
	}
	if m.GetVersion() != version || len(m.GetJob()) != len(partition.JobID{}) || len(m.GetRequest()) == 0 || m.GetPartition() < 0 {
		return nil, fmt.Errorf("decode a job: %w: version %d or an incomplete message", errMalformed, m.GetVersion())
	}
	return &job{
		id: partition.JobID(m.GetJob()), raw: stream.Partition{Topic: m.GetTopic(), Number: m.GetPartition()},
		revision: stream.Revision{Generation: m.GetTopicGeneration(), Offset: m.GetOffset()}, key: stream.Key(m.GetKey()),
		region: m.GetRegion(), attempt: int(m.GetAttempt()), replica: m.GetReplica(), request: m.GetRequest(),
	}, nil
}

// reply is an answer as it travels: exactly one of a decision, missed and failure.
type reply struct {
	job      *job // without its request; attempt and region are those of the request that is answered
	replica  string
	via      int32 // partition of the request topic
	decision partition.Decision
	missed   bool
	failure  *failure
}

type failure struct {
	permanent bool
	detail    string
}

func encodeReply(r *reply) ([]byte, error) {
	m := &wire.SolveReply{
		Version: version, Job: r.job.id[:], Topic: r.job.raw.Topic, Partition: r.job.raw.Number,
		TopicGeneration: r.job.revision.Generation, Offset: r.job.revision.Offset, Key: []byte(r.job.key), Region: r.job.region,
		Attempt: uint32(max(r.job.attempt, 0)), Replica: r.replica, Via: r.via,
	}
	switch {
	case r.missed:
		m.Outcome = &wire.SolveReply_TripMiss{TripMiss: &wire.SolveTripMiss{}}
	case r.failure != nil:
		m.Outcome = &wire.SolveReply_Failure{Failure: &wire.SolveFailure{Permanent: r.failure.permanent, Detail: r.failure.detail}}
	default:
		d := r.decision
		m.Outcome = &wire.SolveReply_Decision{Decision: &wire.SolveDecision{Kind: uint32(d.Kind), Reason: d.Reason, Answer: d.Answer, More: d.More}}
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode a reply: %w", err)
	}
	return b, nil
}

func decodeReply(b []byte) (*reply, error) {
	m := &wire.SolveReply{}
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("decode a reply: %w: %w", errMalformed, err)
	}
	if m.GetVersion() != version || len(m.GetJob()) != len(partition.JobID{}) || m.GetPartition() < 0 || m.GetVia() < 0 {
		return nil, fmt.Errorf("decode a reply: %w: version %d or an incomplete message", errMalformed, m.GetVersion())
	}
	r := &reply{
		job: &job{
			id: partition.JobID(m.GetJob()), raw: stream.Partition{Topic: m.GetTopic(), Number: m.GetPartition()},
			revision: stream.Revision{Generation: m.GetTopicGeneration(), Offset: m.GetOffset()}, key: stream.Key(m.GetKey()),
			region: m.GetRegion(), attempt: int(m.GetAttempt()),
		},
		replica: m.GetReplica(), via: m.GetVia(),
	}
	switch o := m.GetOutcome().(type) {
	case *wire.SolveReply_TripMiss:
		r.missed = true
	case *wire.SolveReply_Failure:
		r.failure = &failure{o.Failure.GetPermanent(), o.Failure.GetDetail()}
	case *wire.SolveReply_Decision:
		kind := o.Decision.GetKind()
		if kind < uint32(partition.Solved) || kind > uint32(partition.Reset) {
			return nil, fmt.Errorf("decode a reply: %w: kind %d", errMalformed, kind)
		}
		r.decision = partition.Decision{Kind: partition.Kind(kind), Reason: o.Decision.GetReason(), Answer: o.Decision.GetAnswer(), More: o.Decision.GetMore()}
	default:
		return nil, fmt.Errorf("decode a reply: %w: no outcome", errMalformed)
	}
	return r, nil
}

// Secret signs and checks records in both directions; an empty one does neither.
type Secret []byte

// sign gives a record's MAC. Topic and length are part of it, so that a request is no reply and nothing moves between topics.
func (s Secret) sign(topic string, value []byte) []byte {
	h := hmac.New(sha256.New, s)
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(topic)))
	h.Write([]byte("milepost.solve.v1\x00"))
	h.Write(n[:])
	h.Write([]byte(topic))
	h.Write(value)
	return h.Sum(nil)
}

// check is errForged for a record that the secret does not vouch for.
func (s Secret) check(topic string, value, mac []byte) error {
	if len(s) > 0 && !hmac.Equal(s.sign(topic, value), mac) {
		return errForged
	}
	return nil
}
