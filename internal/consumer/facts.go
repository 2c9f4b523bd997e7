package consumer

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
)

// topicFacts is what a claim says about the topics.
type topicFacts struct {
	RawID      [16]byte
	LedgerID   [16]byte
	Partitions int32 // of the raw topic
	// PublishMode is ours; empty: not compared.
	PublishMode commit.PublishMode
}

// readFacts asks the broker. The request goes out raw: the client's cached metadata may be seconds old, and would let an
// acquisition pass on a topic that was just made again.
func (s *session) readFacts(ctx context.Context) (topicFacts, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range []string{s.c.cfg.Topic, s.c.cfg.LedgerTopic} {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = new(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return topicFacts{}, fmt.Errorf("read the topics' ids: %w", err)
	}
	facts := topicFacts{PublishMode: s.c.cfg.PublishMode}
	found := 0
	for _, t := range resp.Topics {
		if t.Topic == nil {
			continue
		}
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return topicFacts{}, fmt.Errorf("read the id of topic %s: %w", *t.Topic, err)
		}
		switch *t.Topic {
		case s.c.cfg.Topic:
			facts.RawID, facts.Partitions = t.TopicID, int32(len(t.Partitions))
			found++
		case s.c.cfg.LedgerTopic:
			facts.LedgerID = t.TopicID
			found++
		}
	}
	if found != 2 {
		return topicFacts{}, fmt.Errorf("read the ids of topics %s and %s: the broker named %d of them", s.c.cfg.Topic, s.c.cfg.LedgerTopic, found)
	}
	return facts, nil
}
