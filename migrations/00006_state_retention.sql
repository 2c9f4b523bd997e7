-- +goose Up
ALTER TABLE checkpoint
    ADD COLUMN touched_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN expired    boolean     NOT NULL DEFAULT false;

COMMENT ON COLUMN checkpoint.touched_at IS
    'When the key''s last commit was written here: what retention goes by. It has no index, so that updates stay heap-only';
COMMENT ON COLUMN checkpoint.expired IS
    'Retention has let the current state go: it is the tail that the workload keeps (the last event time), revision and segment stay';

-- +goose Down
-- A program of before knows an expired state by its absence.
UPDATE checkpoint SET state = NULL WHERE expired;
ALTER TABLE checkpoint DROP COLUMN touched_at, DROP COLUMN expired;
