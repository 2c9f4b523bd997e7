//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"google.golang.org/protobuf/proto"

	"milepost/internal/wire"
	"milepost/test/chaos/judge"
)

// watchers keep what tables forget: every owner, every frontier, and each checkpoint row that goes back. They are triggers, so they miss
// nothing and see nothing that was rolled back.
const watchers = `
CREATE TABLE chaos_owner (seq bigserial PRIMARY KEY, partition int, epoch bigint, nonce text, instance text, at timestamptz DEFAULT clock_timestamp());
CREATE TABLE chaos_frontier (seq bigserial PRIMARY KEY, partition int, from_gen int, from_next bigint, from_floor bigint,
	to_gen int, to_next bigint, to_floor bigint, at timestamptz DEFAULT clock_timestamp());
CREATE TABLE chaos_backwards (seq bigserial PRIMARY KEY, what text);
CREATE FUNCTION chaos_owner_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	IF NEW.epoch > 0 THEN
		INSERT INTO chaos_owner (partition, epoch, nonce, instance) VALUES (NEW.partition, NEW.epoch, coalesce(NEW.nonce::text, ''), NEW.instance);
	END IF;
	RETURN NULL; END $$;
CREATE FUNCTION chaos_frontier_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO chaos_frontier (partition, from_gen, from_next, from_floor, to_gen, to_next, to_floor)
	VALUES (NEW.partition, OLD.topic_generation, OLD.next_offset, OLD.ledger_floor, NEW.topic_generation, NEW.next_offset, NEW.ledger_floor);
	RETURN NULL; END $$;
CREATE FUNCTION chaos_checkpoint_back() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO chaos_backwards (what) VALUES (format('partition %s key %s went from revision %s.%s to %s.%s', NEW.partition,
		convert_from(NEW.key, 'UTF8'), OLD.revision_generation, OLD.revision_offset, NEW.revision_generation, NEW.revision_offset));
	RETURN NULL; END $$;
CREATE TRIGGER chaos_owner AFTER INSERT OR UPDATE OF epoch, nonce, instance ON partition_owner FOR EACH ROW EXECUTE FUNCTION chaos_owner_changed();
CREATE TRIGGER chaos_frontier AFTER UPDATE OF topic_generation, next_offset, ledger_floor ON partition_frontier FOR EACH ROW
	WHEN ((OLD.topic_generation, OLD.next_offset, OLD.ledger_floor) IS DISTINCT FROM (NEW.topic_generation, NEW.next_offset, NEW.ledger_floor))
	EXECUTE FUNCTION chaos_frontier_changed();
CREATE TRIGGER chaos_checkpoint AFTER UPDATE ON checkpoint FOR EACH ROW
	WHEN ((NEW.revision_generation, NEW.revision_offset) < (OLD.revision_generation, OLD.revision_offset)) EXECUTE FUNCTION chaos_checkpoint_back();
`

// observer looks at the tables and at the brokers while the workers run, over connections of its own.
type observer struct {
	dsn    string
	admin  *kadm.Client
	topics topics

	mu        sync.Mutex
	samples   []judge.Sample
	producers map[int64]string
}

// install puts the watchers into a database whose tables are made.
func install(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, watchers); err != nil {
		return fmt.Errorf("install the watchers: %w", err)
	}
	return nil
}

// query asks the database, which may be away: it tries until ctx ends.
func (o *observer) query(ctx context.Context, ask func(context.Context, *pgx.Conn) error) error {
	for {
		err := o.once(ctx, ask)
		if err == nil {
			return nil
		}
		if waited := pause(ctx, 200*time.Millisecond); waited != nil {
			return err
		}
	}
}

func (o *observer) once(ctx context.Context, ask func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, o.dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return ask(ctx, conn)
}

func (o *observer) frontiers(ctx context.Context, conn *pgx.Conn) (map[int32]int64, error) {
	at := map[int32]int64{}
	rows, err := conn.Query(ctx, "SELECT partition, next_offset FROM partition_frontier")
	if err != nil {
		return nil, err
	}
	var p int32
	var next int64
	_, err = pgx.ForEachRow(rows, []any{&p, &next}, func() error {
		at[p] = next
		return nil
	})
	return at, err
}

// run takes a sample now and then; one that fails, because something is away, is left out.
func (o *observer) run(ctx context.Context) {
	for n := 0; pause(ctx, 700*time.Millisecond) == nil; n++ {
		bounded, cancel := context.WithTimeout(ctx, 4*time.Second)
		o.sample(bounded)
		if n%3 == 0 {
			o.askProducers(bounded)
		}
		cancel()
	}
}

func (o *observer) sample(ctx context.Context) {
	s := judge.Sample{At: time.Now(), Outputs: map[int32]int64{}, Dead: map[int32]int64{}}
	err := o.once(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		s.Frontiers, err = o.frontiers(ctx, conn)
		return err
	})
	if err != nil {
		return
	}
	// After the frontiers: what they say was done must stand below these.
	ends, err := o.admin.ListEndOffsets(ctx, o.topics.outputs, o.topics.dead)
	if errors.Join(err, ends.Error()) != nil {
		return
	}
	ends.Each(func(l kadm.ListedOffset) {
		if l.Topic == o.topics.dead {
			s.Dead[l.Partition] = l.Offset
		} else {
			s.Outputs[l.Partition] = l.Offset
		}
	})
	o.mu.Lock()
	o.samples = append(o.samples, s)
	o.mu.Unlock()
}

// askProducers asks whose producer ids are. A transactional id takes another one now and then, so it asks more than once.
func (o *observer) askProducers(ctx context.Context) {
	listed, err := o.admin.ListTransactions(ctx, nil, nil)
	if err != nil && len(listed) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, txn := range listed.Sorted() {
		if strings.Contains(txn.TxnID, o.topics.raw) {
			o.producers[txn.ProducerID] = txn.TxnID
		}
	}
}

// quarantined gives what stands in quarantine.
func (o *observer) quarantined(ctx context.Context) (all []judge.Quarantined, err error) {
	err = o.query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		all = nil
		rows, err := conn.Query(ctx, "SELECT partition, key, revision_offset, record, discarded_at IS NOT NULL FROM quarantine ORDER BY 1, 3")
		if err != nil {
			return err
		}
		var q judge.Quarantined
		var key, record []byte
		_, err = pgx.ForEachRow(rows, []any{&q.ID.Partition, &key, &q.ID.Offset, &record, &q.Discarded}, func() error {
			q.Key, q.Value, q.Unreadable = recordOf(record)
			q.Unreadable = q.Unreadable || q.Key != string(key)
			all = append(all, q)
			return nil
		})
		return err
	})
	return all, err
}

// recordOf reads the raw record that a quarantine row keeps.
func recordOf(b []byte) (key, value string, unreadable bool) {
	m := &wire.RawRecord{}
	err := proto.Unmarshal(b, m)
	return string(m.GetKey()), string(m.GetValue()), err != nil
}

// read puts what the tables say into a history.
func (o *observer) read(ctx context.Context, h *judge.History) (err error) {
	if h.Quarantine, err = o.quarantined(ctx); err != nil {
		return err
	}
	err = o.query(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		h.Final, err = o.frontiers(ctx, conn)
		return err
	})
	if err != nil {
		return err
	}
	for sql, take := range map[string]func(pgx.CollectableRow) error{
		"SELECT partition, epoch, nonce, instance, at FROM chaos_owner ORDER BY seq": func(r pgx.CollectableRow) error {
			var x judge.Owner
			defer func() { h.Owners = append(h.Owners, x) }()
			return r.Scan(&x.Partition, &x.Epoch, &x.Nonce, &x.Instance, &x.At)
		},
		"SELECT partition, from_gen, from_next, from_floor, to_gen, to_next, to_floor, at FROM chaos_frontier ORDER BY seq": func(r pgx.CollectableRow) error {
			var x judge.Moved
			defer func() { h.Frontiers = append(h.Frontiers, x) }()
			return r.Scan(&x.Partition, &x.FromGen, &x.From, &x.FromFloor, &x.ToGen, &x.To, &x.Floor, &x.At)
		},
		"SELECT what FROM chaos_backwards ORDER BY seq": func(r pgx.CollectableRow) error {
			var x string
			defer func() { h.Backwards = append(h.Backwards, x) }()
			return r.Scan(&x)
		},
		"SELECT partition, key, revision_offset, coalesce(state, ''), has_prepared FROM checkpoint": func(r pgx.CollectableRow) error {
			var x judge.Checkpoint
			var key, state []byte
			err := r.Scan(&x.Partition, &key, &x.Offset, &state, &x.Prepared)
			x.Key, x.State = string(key), string(state)
			h.Checkpoints = append(h.Checkpoints, x)
			return err
		},
	} {
		if err := o.readRows(ctx, sql, take); err != nil {
			return err
		}
	}
	return nil
}

func (o *observer) readRows(ctx context.Context, sql string, take func(pgx.CollectableRow) error) error {
	return o.once(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sql)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := take(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}
