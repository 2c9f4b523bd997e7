-- +goose Up
ALTER TABLE partition_owner ADD COLUMN publish_mode text NOT NULL DEFAULT 'transactional'
    CONSTRAINT partition_owner_publish_mode CHECK (publish_mode IN ('transactional', 'idempotent'));

COMMENT ON COLUMN partition_owner.publish_mode IS
    'How the owner publishes: transactional or idempotent. All rows of a group''s raw topic agree; it changes only while the group is empty';

-- +goose Down
ALTER TABLE partition_owner DROP COLUMN publish_mode;
