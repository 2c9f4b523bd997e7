-- +goose Up
CREATE TABLE partition_owner (
    group_id          text COLLATE "C" NOT NULL,
    topic             text COLLATE "C" NOT NULL,
    partition         integer     NOT NULL CHECK (partition >= 0),
    epoch             bigint      NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    nonce             uuid,
    generation        integer     NOT NULL DEFAULT 0,
    member_id         text        NOT NULL DEFAULT '',
    instance          text        NOT NULL DEFAULT '',
    lanes             integer     NOT NULL DEFAULT 0 CHECK (lanes >= 0),
    topic_id          uuid,
    topic_generation  integer     NOT NULL DEFAULT 1 CHECK (topic_generation >= 1),
    ledger_topic_id   uuid,
    partitions        integer     NOT NULL DEFAULT 0 CHECK (partitions >= 0),
    released          boolean     NOT NULL DEFAULT false,
    unreleased_former jsonb       NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(unreleased_former) = 'array'),
    acquired_at       timestamptz,
    PRIMARY KEY (group_id, topic, partition),
    CONSTRAINT partition_owner_evidence CHECK (
        epoch = 0 OR num_nulls(nonce, topic_id, ledger_topic_id, acquired_at) = 0)
) WITH (fillfactor = 70);

COMMENT ON TABLE partition_owner IS
    'Who owns a partition: the row that every write of Milepost locks FOR KEY SHARE and an acquisition locks FOR UPDATE. '
    'Cold: it changes only with the owner. An epoch is changed only after SELECT ... FOR UPDATE; a plain UPDATE does not wait for the writers.';
COMMENT ON COLUMN partition_owner.epoch IS 'Ownership epoch, the fencing number: grows by one at each acquisition, for ever; 0: never owned';
COMMENT ON COLUMN partition_owner.nonce IS 'Of the tenure that holds the epoch: tells owners apart where a restored database repeats epochs';
COMMENT ON COLUMN partition_owner.generation IS 'The consumer group''s generation at the acquisition: evidence, not a fence; starts again with the group';
COMMENT ON COLUMN partition_owner.member_id IS 'The group member that the tenure began under';
COMMENT ON COLUMN partition_owner.instance IS 'Unique per process start; transactional ids derive from it';
COMMENT ON COLUMN partition_owner.lanes IS 'How many transactional producers the instance has';
COMMENT ON COLUMN partition_owner.topic_id IS 'Kafka''s id of the raw topic: a topic made again has another';
COMMENT ON COLUMN partition_owner.topic_generation IS 'Milepost''s number for the life of the raw topic, the first half of every revision';
COMMENT ON COLUMN partition_owner.ledger_topic_id IS 'Kafka''s id of the ledger topic that belongs to this group and raw topic, and to no other';
COMMENT ON COLUMN partition_owner.partitions IS 'The raw topic''s partition count at the acquisition';
COMMENT ON COLUMN partition_owner.released IS 'The owner has drained: no transaction with the partition is open or unknown, none can be composed any more';
COMMENT ON COLUMN partition_owner.unreleased_former IS
    'Former owners that did not release, [{"instance", "lanes", "epoch"}]: their lanes must be initialised before a recovery';

CREATE TABLE partition_frontier (
    group_id         text COLLATE "C" NOT NULL,
    topic            text COLLATE "C" NOT NULL,
    partition        integer     NOT NULL,
    topic_generation integer     NOT NULL CHECK (topic_generation >= 1),
    next_offset      bigint      NOT NULL CHECK (next_offset >= 0),
    leader_epoch     integer     NOT NULL DEFAULT -1 CHECK (leader_epoch >= -1),
    ledger_floor     bigint      NOT NULL CHECK (ledger_floor >= 0),
    seen_at          timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (group_id, topic, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

COMMENT ON TABLE partition_frontier IS
    'How far a partition is durably done. Hot: written at every heartbeat, so it stands apart from partition_owner, which '
    'every write locks. No column but the primary key''s may be indexed, so that its updates stay heap-only.';
COMMENT ON COLUMN partition_frontier.next_offset IS 'The next offset to do: everything below it is durably done (the convention of Kafka''s committed offsets)';
COMMENT ON COLUMN partition_frontier.leader_epoch IS 'Leader epoch under which the record below next_offset was read; -1: not known';
COMMENT ON COLUMN partition_frontier.ledger_floor IS 'A recovery reads the ledger partition from here';
COMMENT ON COLUMN partition_frontier.seen_at IS 'The owner''s last heartbeat';

-- +goose Down
DROP TABLE partition_frontier;
DROP TABLE partition_owner;
