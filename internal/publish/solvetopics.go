package publish

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Solve is the topic of a region's requests to matchers.
func (t Topics) Solve(region string) string { return t.Prefix + ".solve." + region }

// SolveReplies is the topic of the matchers' replies; its partitions are the raw topic's.
func (t Topics) SolveReplies() string { return t.Prefix + ".solve-replies" }

// solveRetention is how long requests and replies are kept: they carry no promise, and after the retry time nobody wants them.
const solveRetention = "300000"

// fewestRequestPartitions is how many partitions a region's requests get at least: so many replicas can share them.
const fewestRequestPartitions = 12

// EnsureSolveTopics creates the topics of remote solving that are missing, or says that they are, for regions whose worker's topics are
// there already. Of the spec's topics it looks at Raw alone.
func EnsureSolveTopics(ctx context.Context, client *kgo.Client, spec TopicsSpec, regions []string) error {
	e := ensurer{client: client, admin: kadm.NewClient(client), spec: spec}
	topics := []string{spec.Topics.SolveReplies()}
	for _, region := range regions {
		topics = append(topics, spec.Topics.Solve(region))
	}
	if err := e.look(ctx, append([]string{spec.Raw}, topics...)...); err != nil {
		return err
	}
	raw, err := e.ensure(ctx, spec.Raw, 0, nil)
	if err != nil {
		return err
	}
	settings := map[string]string{"cleanup.policy": "delete", "retention.ms": solveRetention, "segment.ms": solveRetention}
	for i, topic := range topics {
		n := max(raw.Partitions, fewestRequestPartitions)
		if i == 0 {
			n = raw.Partitions
		}
		info, err := e.ensure(ctx, topic, n, settings)
		if err != nil {
			return err
		}
		if i == 0 && info.Partitions != raw.Partitions {
			return &TopicError{
				Topic: topic, Setting: "partition count", Found: strconv.Itoa(int(info.Partitions)),
				Wanted: strconv.Itoa(int(raw.Partitions)) + ", as the raw topic " + raw.Name + " has",
			}
		}
		if err := e.accepts(ctx, topic); err != nil {
			return err
		}
	}
	return nil
}
