-- +goose Up
CREATE TABLE quarantine (
    group_id            text COLLATE "C" NOT NULL,
    topic               text COLLATE "C" NOT NULL,
    partition           integer     NOT NULL,
    key                 bytea       NOT NULL CONSTRAINT quarantine_key_size CHECK (octet_length(key) BETWEEN 1 AND 2000),
    revision_generation integer     NOT NULL CHECK (revision_generation >= 1),
    revision_offset     bigint      NOT NULL CHECK (revision_offset >= 0),
    class               text        NOT NULL,
    reason              text        NOT NULL,
    published           boolean     NOT NULL,
    epoch               bigint      NOT NULL,
    at                  timestamptz NOT NULL,
    record              bytea       NOT NULL,
    prepared_id         uuid,
    prepared_segment    bigint,
    prepared_state      bytea,
    prepared_outputs    bytea,
    PRIMARY KEY (group_id, topic, partition, key, revision_generation, revision_offset)
);

COMMENT ON TABLE quarantine IS
    'Observations of keys that cannot go on by themselves, in their order: the failed one and those that followed it. A row '
    'counts its observation as done for the frontier.';
COMMENT ON COLUMN quarantine.class IS 'Class of the error that stopped the key';
COMMENT ON COLUMN quarantine.reason IS 'For people; never the payload';
COMMENT ON COLUMN quarantine.published IS 'The observation''s outputs are in the ledger';
COMMENT ON COLUMN quarantine.epoch IS 'Ownership epoch under which the row was written';
COMMENT ON COLUMN quarantine.record IS 'milepost.v1.RawRecord: the raw record as it was fetched';
COMMENT ON COLUMN quarantine.prepared_outputs IS 'The prepared commit that could not be published, moved here from its checkpoint row in one statement';

-- +goose Down
DROP TABLE quarantine;
