package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/commit"
	"milepost/internal/publish"
)

// settlePublishMode compares the mode with the stored one. Where they differ it changes the stored one if the group is empty, and refuses
// if it is not (H9): a process that publishes without transactions has no fence, and one that publishes with them trusts in it.
func (s *service) settlePublishMode(ctx context.Context, admin *kgo.Client) error {
	mode := commit.PublishMode(s.opts.publish)
	stored, err := s.store.OtherPublishMode(ctx, s.opts.group, s.opts.raw, mode)
	if err != nil || stored == "" {
		return err
	}
	members, err := publish.Members(ctx, admin, s.opts.group)
	if err != nil {
		return err
	}
	if members > 0 {
		return fmt.Errorf("--publish is %s, but group %s publishes %s and has %s: stop every process of the group, see that none is "+
			"left (a paused one counts), then start with the new mode; or start this one with --publish %s",
			mode, s.opts.group, stored, plural(members, "member"), stored)
	}
	if err := s.store.ChangePublishMode(ctx, s.opts.group, s.opts.raw, mode); err != nil {
		return err
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "publish mode changed, the group is empty", slog.String("from", string(stored)), slog.String("to", string(mode)))
	return nil
}
