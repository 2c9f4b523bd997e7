-- +goose Up
ALTER TABLE partition_frontier
    ADD COLUMN oldest_pending_ms bigint  NOT NULL DEFAULT 0 CHECK (oldest_pending_ms >= 0),
    ADD COLUMN waiting           integer NOT NULL DEFAULT 0 CHECK (waiting >= 0),
    ADD COLUMN blocked           integer NOT NULL DEFAULT 0 CHECK (blocked >= 0),
    ADD COLUMN anew_generation   integer,
    ADD COLUMN anew_offset       bigint,
    ADD COLUMN anew_reason       text,
    ADD CONSTRAINT partition_frontier_anew CHECK (num_nulls(anew_generation, anew_offset, anew_reason) IN (0, 3));

COMMENT ON COLUMN partition_frontier.oldest_pending_ms IS 'At the owner''s last heartbeat: age of the oldest observation in hand, 0 without one';
COMMENT ON COLUMN partition_frontier.waiting IS 'At the owner''s last heartbeat: keys that wait for their turn or their row';
COMMENT ON COLUMN partition_frontier.blocked IS 'At the owner''s last heartbeat: keys that wait for a retry';
COMMENT ON COLUMN partition_frontier.anew_generation IS
    'With anew_offset: a key whose checkpoint is of a lower revision begins anew, with a reset of anew_reason';

ALTER TABLE quarantine
    ADD COLUMN discarded_at    timestamptz,
    ADD COLUMN tombstone_floor bigint,
    ADD CONSTRAINT quarantine_tombstone CHECK (num_nulls(discarded_at, tombstone_floor) IN (0, 2));

COMMENT ON COLUMN quarantine.discarded_at IS 'An operator discarded the observation: a tombstone, which keeps it done until frontier and floor are past it';
COMMENT ON COLUMN quarantine.tombstone_floor IS 'The tombstone may go when the partition''s ledger floor has come so far';

CREATE TABLE operator_request (
    group_id     text COLLATE "C" NOT NULL,
    topic        text COLLATE "C" NOT NULL,
    partition    integer     NOT NULL CHECK (partition >= 0),
    id           bigint      GENERATED ALWAYS AS IDENTITY,
    kind         text        NOT NULL CHECK (kind IN ('release', 'discard', 'seek')),
    key          bytea,
    argument     bigint,
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    requested_by text        NOT NULL DEFAULT session_user,
    state        text        NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done', 'failed', 'withdrawn')),
    outcome      text        NOT NULL DEFAULT '',
    epoch        bigint,
    done_at      timestamptz,
    PRIMARY KEY (group_id, topic, partition, id),
    CONSTRAINT operator_request_subject CHECK (CASE WHEN kind = 'seek' THEN argument >= 0 AND key IS NULL ELSE key IS NOT NULL END)
);

CREATE INDEX operator_request_waiting ON operator_request (group_id, topic, partition, id) WHERE state = 'waiting';

COMMENT ON TABLE operator_request IS
    'What operators ask of partitions. A command only writes a request; the partition''s owner executes it, fenced like all it does.';
COMMENT ON COLUMN operator_request.argument IS 'Of a seek: the offset';
COMMENT ON COLUMN operator_request.state IS 'waiting, done, failed (outcome says why), withdrawn (the command did not wait longer)';
COMMENT ON COLUMN operator_request.epoch IS 'Ownership epoch that answered';

-- +goose Down
DROP TABLE operator_request;
DELETE FROM quarantine WHERE discarded_at IS NOT NULL;
ALTER TABLE quarantine DROP COLUMN discarded_at, DROP COLUMN tombstone_floor;
ALTER TABLE partition_frontier
    DROP COLUMN oldest_pending_ms, DROP COLUMN waiting, DROP COLUMN blocked,
    DROP COLUMN anew_generation, DROP COLUMN anew_offset, DROP COLUMN anew_reason;
