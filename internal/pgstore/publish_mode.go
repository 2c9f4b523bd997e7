package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"milepost/internal/commit"
)

const otherModeSQL = `
SELECT publish_mode FROM partition_owner
WHERE group_id = $1 AND topic = $2 AND epoch > 0 AND publish_mode <> $3
LIMIT 1`

// OtherPublishMode gives the mode that the group's partitions of the topic were last owned in where it is another than mode; empty when
// all agree or none was ever owned.
func (s *Store) OtherPublishMode(ctx context.Context, group, topic string, mode commit.PublishMode) (commit.PublishMode, error) {
	var other commit.PublishMode
	err := s.rows(ctx, "read the publish mode", otherModeSQL, []any{group, topic, string(mode)}, func(row pgx.CollectableRow) error {
		return row.Scan(&other)
	})
	return other, err
}

const changeModeSQL = `
UPDATE partition_owner SET publish_mode = $3
WHERE group_id = $1 AND topic = $2 AND epoch > 0 AND publish_mode <> $3
RETURNING partition`

// ChangePublishMode writes the mode into the rows of every partition that was ever owned. The caller has seen that the group is
// empty (H9); a process of the old mode that acquires meanwhile is refused at its next acquisition.
func (s *Store) ChangePublishMode(ctx context.Context, group, topic string, mode commit.PublishMode) error {
	return s.rows(ctx, "change the publish mode", changeModeSQL, []any{group, topic, string(mode)}, func(pgx.CollectableRow) error { return nil })
}
