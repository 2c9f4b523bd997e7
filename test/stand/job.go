package stand

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/pgstore"
)

// Job is topics, a group and a database that no other test uses.
type Job struct {
	Raw, Prefix, Group string
	DSN                string
	Partitions         int32
	Counted            int // records of each key before the first one here, see Seed
	Client             *kgo.Client
	Admin              *kadm.Client
	DB                 *pgxpool.Pool

	tb      testing.TB
	stand   *Stand
	program string
}

// NewJob makes the raw topic and a database with the program's tables.
func (s *Stand) NewJob(tb testing.TB, program string, partitions int32) *Job {
	tb.Helper()
	ctx := Limit(tb, 2*time.Minute)
	name := strings.ToLower(rand.Text()[:10])
	dsn, err := s.Postgres.NewDatabase(ctx, "job_"+name)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := pgstore.Migrate(ctx, dsn, pgstore.MigrateUp); err != nil {
		tb.Fatal(err)
	}
	j := &Job{
		Raw: "job-" + name + ".raw", Prefix: "job-" + name, Group: "job-" + name, DSN: dsn, Partitions: partitions,
		tb: tb, stand: s, program: program,
	}
	if j.Client, err = kgo.NewClient(
		kgo.SeedBrokers(s.Kafka.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.AlwaysRetryEOF(),
	); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(j.Client.Close)
	j.Admin = kadm.NewClient(j.Client)
	j.makeTopics(ctx, j.Raw, j.Prefix+".matched", j.Prefix+".dead-letter")
	if j.DB, err = pgxpool.New(ctx, dsn); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(j.DB.Close)
	return j
}

// makeTopics makes topics and waits until their leaders serve them: a broker answers before that.
func (j *Job) makeTopics(ctx context.Context, topics ...string) {
	j.tb.Helper()
	if _, err := j.Admin.CreateTopics(ctx, j.Partitions, 1, nil, topics...); err != nil {
		j.tb.Fatal(err)
	}
	Eventually(j.tb, time.Minute, "the topics have leaders", func(ctx context.Context) error {
		ends, err := j.Admin.ListEndOffsets(ctx, topics...)
		if err == nil {
			err = ends.Error()
		}
		n := 0
		ends.Each(func(kadm.ListedOffset) { n++ })
		if err == nil && n != len(topics)*int(j.Partitions) {
			err = fmt.Errorf("%d partitions have leaders", n)
		}
		return err
	})
}

// Worker starts a worker of the job.
func (j *Job) Worker(name string, env []string, more ...string) *Process {
	j.tb.Helper()
	args := append([]string{
		"run", "--workload", "counter", "--brokers", strings.Join(j.stand.Kafka.Addrs(), ","), "--dsn", j.DSN, "--group", j.Group,
		"--raw", j.Raw, "--prefix", j.Prefix, "--topics", "create", "--listen", "127.0.0.1:0", "--log", "json",
	}, more...)
	return Run(j.tb, name, j.program, env, args...)
}

// Seed writes checkpoints of keys that have been counted before: of key i in partition i modulo the partitions, at offset 0 of the raw topic.
func (j *Job) Seed(ctx context.Context, keys, counted int) error {
	j.Counted = counted
	state := fmt.Appendf(nil, "%0300d", counted) // of the size that a vehicle's has
	columns := []string{
		"group_id", "topic", "partition", "key", "revision_generation", "revision_offset", "segment", "commit_id", "state", "has_prepared",
	}
	_, err := j.DB.CopyFrom(ctx, pgx.Identifier{"checkpoint"}, columns, pgx.CopyFromSlice(keys, func(i int) ([]any, error) {
		id := pgtype.UUID{Bytes: [16]byte{1, byte(i), byte(i >> 8), byte(i >> 16)}, Valid: true}
		return []any{j.Group, j.Raw, int32(i) % j.Partitions, []byte(Key(i)), int32(1), int64(0), int64(1), id, state, false}, nil
	}))
	if err == nil {
		_, err = j.DB.Exec(ctx, "VACUUM ANALYZE checkpoint")
	}
	if err != nil {
		return fmt.Errorf("seed %d checkpoints: %w", keys, err)
	}
	return nil
}

// Hold writes a record of a key of its own to the partition.
func (j *Job) Hold(ctx context.Context, partition int32) error {
	r := &kgo.Record{Topic: j.Raw, Partition: partition, Key: fmt.Appendf(nil, "hold %d", partition), Value: []byte("0")}
	if err := j.Client.ProduceSync(ctx, r).FirstErr(); err != nil {
		return fmt.Errorf("write a first record: %w", err)
	}
	return nil
}

// Ends gives the raw topic's end offsets.
func (j *Job) Ends(ctx context.Context) (map[int32]int64, error) {
	listed, err := j.Admin.ListEndOffsets(ctx, j.Raw)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list the raw topic's ends: %w", err)
	}
	ends := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends, nil
}

// Frontiers gives the durable frontiers.
func (j *Job) Frontiers(ctx context.Context) (map[int32]int64, error) {
	rows, err := j.DB.Query(ctx, "SELECT partition, next_offset FROM partition_frontier WHERE group_id = $1 AND topic = $2", j.Group, j.Raw)
	if err != nil {
		return nil, fmt.Errorf("read frontiers: %w", err)
	}
	defer rows.Close()
	frontiers := map[int32]int64{}
	for rows.Next() {
		var p int32
		var next int64
		if err := rows.Scan(&p, &next); err != nil {
			return nil, fmt.Errorf("read frontiers: %w", err)
		}
		frontiers[p] = next
	}
	return frontiers, rows.Err()
}

// Reached says nil when the frontiers have reached the offsets.
func (j *Job) Reached(ctx context.Context, ends map[int32]int64) error {
	frontiers, err := j.Frontiers(ctx)
	if err != nil {
		return err
	}
	for p, end := range ends {
		if frontiers[p] < end {
			return fmt.Errorf("partition %d: the frontier is %d, the end %d", p, frontiers[p], end)
		}
	}
	return nil
}

// Drained waits until the frontiers are at the raw topic's present ends.
func (j *Job) Drained(d time.Duration) {
	j.tb.Helper()
	ends, err := j.Ends(Limit(j.tb, 30*time.Second))
	if err != nil {
		j.tb.Fatal(err)
	}
	Eventually(j.tb, d, "every record is done", func(ctx context.Context) error { return j.Reached(ctx, ends) })
}

// HintLeads compares the group's committed offsets, read first, with the durable frontiers; an error says that one leads (P40).
func (j *Job) HintLeads(ctx context.Context) error {
	offsets, err := j.Admin.FetchOffsets(ctx, j.Group)
	if err != nil {
		return fmt.Errorf("fetch the group's offsets: %w", err)
	}
	frontiers, err := j.Frontiers(ctx)
	if err != nil {
		return err
	}
	for p, next := range frontiers {
		if o, ok := offsets.Lookup(j.Raw, p); ok && o.At > next {
			return fmt.Errorf("partition %d: the group's offset %d leads the durable frontier %d", p, o.At, next)
		}
	}
	return nil
}

// Owners gives the instance that has each partition; one that has not recovered it yet is nobody.
func (j *Job) Owners(ctx context.Context) (map[int32]string, error) {
	rows, err := j.DB.Query(ctx, `SELECT partition, CASE WHEN unreleased_former = '[]' THEN instance ELSE '' END
		FROM partition_owner WHERE group_id = $1 AND topic = $2 AND epoch > 0`, j.Group, j.Raw)
	if err != nil {
		return nil, fmt.Errorf("read owners: %w", err)
	}
	defer rows.Close()
	owners := map[int32]string{}
	for rows.Next() {
		var p int32
		var instance string
		if err := rows.Scan(&p, &instance); err != nil {
			return nil, fmt.Errorf("read owners: %w", err)
		}
		owners[p] = instance
	}
	return owners, rows.Err()
}
