package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// metadata43 is the metadata.version that Kafka 4.3 brought: from there on the broker takes the offset commits of a member epoch that is
// not the newest as long as the partition is still the member's (KIP-1251). Without that every rebalance stops the commits.
const metadata43 = 30

// CheckProtocol asks whether the brokers can do what the protocol needs. franz-go would fall back to the classic protocol without a
// word where they cannot.
func CheckProtocol(ctx context.Context, client *kgo.Client, p Protocol) error {
	if p != ConsumerGroup {
		return nil
	}
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "milepost", "1"
	resp, err := req.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("ask the broker for its features: %w", err)
	}
	heartbeat := int16(-1)
	for _, k := range resp.ApiKeys {
		if k.ApiKey == int16(kmsg.ConsumerGroupHeartbeat) {
			heartbeat = k.MaxVersion
		}
	}
	group := int16(0)
	for _, f := range resp.FinalizedFeatures {
		if f.Name == "group.version" {
			group = f.MaxVersionLevel
		}
	}
	metadata := int16(metadata43) // a broker that does not say is believed
	for _, f := range resp.SupportedFeatures {
		if f.Name == "metadata.version" {
			metadata = f.MaxVersion
		}
	}
	const remedy = "use --protocol classic"
	switch {
	case heartbeat < 1 || metadata < metadata43:
		return fmt.Errorf("protocol consumer (KIP-848) needs brokers from Kafka 4.3 on, these are older: upgrade them, or %s", remedy)
	case group < 1:
		return fmt.Errorf("protocol consumer (KIP-848) is switched off at the brokers (group.version is %d): "+
			"kafka-features.sh upgrade --feature group.version=1, or %s", group, remedy)
	}
	return nil
}

// checkStatic refuses static membership under KIP-848: leaving, franz-go names no instance, so that a restarted process waits for
// its own session's end while the dead member's commits are still accepted.
func (c *Config) checkStatic() error {
	if c.Protocol != ConsumerGroup {
		return nil
	}
	probe, err := kgo.NewClient(c.Client...) // it dials nobody before its first request
	if err != nil {
		return fmt.Errorf("consumer: client options: %w", err)
	}
	defer probe.Close()
	if id, ok := probe.OptValue(kgo.InstanceID).(string); ok && id != "" {
		return fmt.Errorf("consumer: static membership (instance %q) does not go with protocol consumer: "+
			"a process that comes back would wait for its own session to end", id)
	}
	return nil
}

// proveEpoch asks for the group's offsets under member id and epoch: the coordinator answers only when both are current.
func (s *session) proveEpoch(ctx context.Context, member string, epoch int32) error {
	req := kmsg.NewPtrOffsetFetchRequest()
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.MemberID, g.MemberEpoch = s.c.cfg.Group, &member, epoch
	// No topics: the check comes before they would be looked at.
	g.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
	req.Groups = append(req.Groups, g)
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return fmt.Errorf("prove the member epoch: %w", err)
	}
	if len(resp.Groups) != 1 {
		return fmt.Errorf("prove the member epoch: the answer names %d groups", len(resp.Groups))
	}
	switch err := kerr.ErrorForCode(resp.Groups[0].ErrorCode); {
	case err == nil:
		return nil
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.StaleMemberEpoch), errors.Is(err, kerr.FencedMemberEpoch),
		errors.Is(err, kerr.GroupIDNotFound):
		return &MemberError{MemberID: member, Generation: epoch, Err: err}
	default:
		return fmt.Errorf("prove the member epoch: %w", err)
	}
}

// advanced gives the newer epoch of the same member where a proof was refused only because the epoch had moved: under KIP-848 the
// member heartbeats on during an assignment callback. While it is a member, nothing that it has not given up goes to another.
func (s *session) advanced(err error, member string, epoch int32) (int32, bool) {
	if s.c.cfg.Protocol != ConsumerGroup || !errors.Is(err, kerr.StaleMemberEpoch) {
		return 0, false
	}
	now, next := s.client.GroupMetadata()
	return next, now == member && next > epoch
}
