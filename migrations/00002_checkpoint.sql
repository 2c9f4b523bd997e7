-- +goose Up
CREATE TABLE checkpoint (
    group_id            text COLLATE "C" NOT NULL,
    topic               text COLLATE "C" NOT NULL,
    partition           integer NOT NULL,
    key                 bytea   NOT NULL CONSTRAINT checkpoint_key_size CHECK (octet_length(key) BETWEEN 1 AND 2000),
    revision_offset     bigint  NOT NULL DEFAULT 0,
    segment             bigint  NOT NULL DEFAULT 0,
    prepared_offset     bigint,
    prepared_segment    bigint,
    prepared_epoch      bigint,
    revision_generation integer NOT NULL DEFAULT 0,
    prepared_generation integer,
    commit_id           uuid,
    prepared_id         uuid,
    has_prepared        boolean NOT NULL,
    state               bytea,
    prepared_state      bytea,
    prepared_outputs    bytea,
    PRIMARY KEY (group_id, topic, partition, key),
    CONSTRAINT checkpoint_prepared_whole CHECK (
        num_nonnulls(prepared_generation, prepared_offset, prepared_segment, prepared_epoch, prepared_id, prepared_state, prepared_outputs)
        = CASE WHEN has_prepared THEN 7 ELSE 0 END),
    CONSTRAINT checkpoint_prepared_newer CHECK (
        NOT has_prepared OR (prepared_generation, prepared_offset) > (revision_generation, revision_offset))
) WITH (fillfactor = 60);

-- has_prepared stays true while a busy key's next prepare folds its former one, so those updates stay heap-only.
CREATE INDEX checkpoint_prepared ON checkpoint (group_id, topic, partition, key) WHERE has_prepared;

COMMENT ON TABLE checkpoint IS
    'Durable state per key: the current checkpoint and, beside it, at most one prepared commit, which is durable but not yet '
    'known to be published. No index may stand on a column that an update changes, except has_prepared.';
COMMENT ON COLUMN checkpoint.key IS 'Kafka''s record key, any bytes';
COMMENT ON COLUMN checkpoint.revision_generation IS 'Topic generation of the observation that made the current checkpoint; 0: none yet';
COMMENT ON COLUMN checkpoint.revision_offset IS 'Offset of the observation that made the current checkpoint';
COMMENT ON COLUMN checkpoint.segment IS 'Unbroken stretch of the key''s history';
COMMENT ON COLUMN checkpoint.commit_id IS 'Digest of the commit that made the current checkpoint';
COMMENT ON COLUMN checkpoint.state IS 'The workload''s bytes; null with a revision: expired, only the tail is left';
COMMENT ON COLUMN checkpoint.has_prepared IS 'A prepared commit stands here';
COMMENT ON COLUMN checkpoint.prepared_id IS 'Digest of everything that the prepared commit writes: the same id is the same commit';
COMMENT ON COLUMN checkpoint.prepared_epoch IS 'Ownership epoch under which it was prepared';
COMMENT ON COLUMN checkpoint.prepared_outputs IS 'milepost.v1.PreparedOutputs: the records to publish, byte for byte';

-- +goose Down
DROP TABLE checkpoint;
