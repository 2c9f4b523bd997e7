package publish

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Solve is the topic of a region's requests to matchers.
func (t Topics) Solve(region string) string { return t.Prefix + ".solve." + region }

// SolveReplies is the topic of the matchers' replies; its partitions are the raw topic's.
func (t Topics) SolveReplies() string { return t.Prefix + ".solve-replies" }

// solveRetention is how long requests and replies are kept: they carry no promise, and after the retry time nobody wants them.
const solveRetention = "300000"

// fewestRequestPartitions is how many partitions a region's requests get where no number of lanes is asked for, if the raw topic has
// not more: so many replicas can share them.
const fewestRequestPartitions = 12

// SolveRegion is a region whose jobs are decided remotely.
type SolveRegion struct {
	ID    string
	Lanes int32 // partitions that its requests have at least; 0: as many as the raw topic has, and twelve at least
}

// EnsureSolveTopics creates the topics of remote solving that are missing, or says that they are, for regions whose worker's topics are
// there already; a region's requests that have fewer partitions than it has lanes get more. Of the spec's topics it looks at Raw alone.
// It gives the number of partitions of each region's requests.
func EnsureSolveTopics(ctx context.Context, client *kgo.Client, spec TopicsSpec, regions []SolveRegion) (map[string]int32, error) {
	e := ensurer{client: client, admin: kadm.NewClient(client), spec: spec}
	topics := []string{spec.Raw, spec.Topics.SolveReplies()}
	for _, r := range regions {
		topics = append(topics, spec.Topics.Solve(r.ID))
	}
	if err := e.look(ctx, topics...); err != nil {
		return nil, err
	}
	raw, err := e.ensure(ctx, spec.Raw, 0, nil)
	if err != nil {
		return nil, err
	}
	if err := e.solveReplies(ctx, raw); err != nil {
		return nil, err
	}
	partitions := map[string]int32{}
	for _, r := range regions {
		if partitions[r.ID], err = e.solveRequests(ctx, r, raw); err != nil {
			return nil, err
		}
	}
	return partitions, nil
}

func solveSettings() map[string]string {
	return map[string]string{"cleanup.policy": "delete", "retention.ms": solveRetention, "segment.ms": solveRetention}
}

func (e *ensurer) solveReplies(ctx context.Context, raw TopicInfo) error {
	topic := e.spec.Topics.SolveReplies()
	info, err := e.ensure(ctx, topic, raw.Partitions, solveSettings())
	if err != nil {
		return err
	}
	if info.Partitions != raw.Partitions {
		return &TopicError{
			Topic: topic, Setting: "partition count", Found: strconv.Itoa(int(info.Partitions)),
			Wanted: strconv.Itoa(int(raw.Partitions)) + ", as the raw topic " + raw.Name + " has",
		}
	}
	return e.accepts(ctx, topic)
}

func (e *ensurer) solveRequests(ctx context.Context, r SolveRegion, raw TopicInfo) (int32, error) {
	topic, n := e.spec.Topics.Solve(r.ID), r.Lanes
	if n == 0 {
		n = max(raw.Partitions, fewestRequestPartitions)
	}
	info, err := e.ensure(ctx, topic, n, solveSettings())
	if err != nil {
		return 0, err
	}
	if info.Partitions < r.Lanes {
		if info, err = e.widen(ctx, info, r); err != nil {
			return 0, err
		}
	}
	return info.Partitions, e.accepts(ctx, topic)
}

// widen gives a region's requests as many partitions as it has lanes. Fewer they never get: Kafka takes none away.
func (e *ensurer) widen(ctx context.Context, info TopicInfo, r SolveRegion) (TopicInfo, error) {
	if !e.spec.Create {
		return info, &TopicError{
			Topic: info.Name, Setting: "partition count", Found: strconv.Itoa(int(info.Partitions)),
			Wanted: fmt.Sprintf("at least %d, as the region has lanes; add partitions, or run with --topics create", r.Lanes),
		}
	}
	resp, err := e.admin.UpdatePartitions(ctx, int(r.Lanes), info.Name)
	if err == nil {
		err = resp.Error()
	}
	// Of two processes that are told at once one comes second.
	if err != nil && !is(err, kerr.InvalidPartitions) {
		return info, fmt.Errorf("add partitions to topic %s: %w", info.Name, err)
	}
	for {
		if err := e.look(ctx, info.Name); err != nil {
			return info, err
		}
		now, there, err := e.find(info.Name)
		if err != nil {
			return info, err
		}
		if there && now.Partitions >= r.Lanes {
			return now, nil
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return info, fmt.Errorf("add partitions to topic %s: %w", info.Name, context.Cause(ctx))
		}
	}
}
