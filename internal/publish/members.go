package publish

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Members counts the group's members, of either protocol; 0 for a group that does not exist.
func Members(ctx context.Context, client *kgo.Client, group string) (int, error) {
	admin := kadm.NewClient(client)
	classic, err := admin.DescribeGroups(ctx, group)
	if err != nil {
		return 0, fmt.Errorf("describe group %s: %w", group, err)
	}
	consumers, err := admin.DescribeConsumerGroups(ctx, group)
	if err != nil {
		return 0, fmt.Errorf("describe group %s: %w", group, err)
	}
	n := 0
	for _, g := range classic {
		// A group of the other protocol is not found, and so is one that does not exist.
		if g.Err != nil && !errors.Is(g.Err, kerr.GroupIDNotFound) {
			return 0, fmt.Errorf("describe group %s: %w", group, g.Err)
		}
		n += len(g.Members)
	}
	for _, g := range consumers {
		if g.Err != nil && !is(g.Err, kerr.GroupIDNotFound, kerr.UnsupportedVersion) {
			return 0, fmt.Errorf("describe group %s: %w", group, g.Err)
		}
		n += len(g.Members)
	}
	return n, nil
}
