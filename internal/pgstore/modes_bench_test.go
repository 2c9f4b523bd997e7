package pgstore_test

import (
	"fmt"
	"testing"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/pgstore"
	"milepost/internal/stream"
)

// BenchmarkModes measures what an observation costs the database in each durability mode (A13): writes of checkpoint rows, and bytes of its
// log. 500 busy keys of 8 partitions, each with 600 bytes of state, and 400 of output an
// observation. In mode prepared each observation is one prepare, which folds its key's former one; in mode deferred a key's newest
// checkpoint is persisted after so many of its observations: 16 is the bound by number, 2 what the bound of 2 s makes of one a second.
func BenchmarkModes(b *testing.B) {
	b.Run("prepared", func(b *testing.B) { benchmarkMode(b, 0) })
	b.Run("deferred=2", func(b *testing.B) { benchmarkMode(b, 2) })
	b.Run("deferred=16", func(b *testing.B) { benchmarkMode(b, 16) })
}

const modeKeys, modePartitions, modeState, modeOutput = 500, 8, 600, 400

// benchmarkMode runs one observation of each key a turn; persistAfter 0 is mode prepared.
func benchmarkMode(b *testing.B, persistAfter int) {
	b.Helper()
	dsn := migrated(b)
	s := store(b, dsn, func(c *pgstore.Config) { c.MaxConns = 2 })
	db := connect(b, dsn)
	tenures := make([]*commit.Tenure, modePartitions)
	for i := range tenures {
		tenures[i] = own(b, s, committest.Part(int32(i)), "bench", 1)
	}
	m := &modeBench{b: b, s: s, tenures: tenures, base: make([]stream.Revision, modeKeys), after: persistAfter}
	for range max(persistAfter, 1) + 1 { // every row is there, and the next write of each is an update
		m.turn()
	}
	execute(b, db, "CHECKPOINT")
	const walSQL = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
	wal, written := scalar[int64](b, db, walSQL), m.written
	turns := 0
	for b.Loop() {
		m.turn()
		turns++
	}
	wal, written = scalar[int64](b, db, walSQL)-wal, m.written-written
	observations := float64(modeKeys * turns)
	b.ReportMetric(float64(written)/observations, "rows/obs")
	b.ReportMetric(float64(wal)/observations, "WAL-B/obs")
	b.ReportMetric(observations/b.Elapsed().Seconds(), "obs/s")
	b.ReportMetric(0, "ns/op")
}

type modeBench struct {
	b       *testing.B
	s       *pgstore.Store
	tenures []*commit.Tenure
	base    []stream.Revision
	after   int
	offset  int64
	turns   int
	written int
}

// turn takes one observation of each key and writes what the mode writes of them.
func (m *modeBench) turn() {
	m.turns++
	var prepared []commit.Commit
	var persisted []commit.Persist
	for k := range m.base {
		m.offset++
		if m.after > 0 && (m.turns+k)%m.after != 0 {
			continue // published, and dirty in memory
		}
		to := stream.Revision{Generation: 1, Offset: 1000 + m.offset}
		c := commit.NewCommit(m.tenures[k%modePartitions], stream.Key(fmt.Sprintf("vehicle-%06d", k)), m.base[k], commit.Plan{
			Next:    commit.Checkpoint{Revision: to, Segment: 1, State: noise(modeState, m.offset)},
			Outputs: []commit.Output{{Topic: "out", Key: []byte("k"), Value: noise(modeOutput, m.offset)}},
		})
		m.base[k] = to
		if m.after == 0 {
			prepared = append(prepared, c)
		} else {
			persisted = append(persisted, commit.Persist{Tenure: c.Tenure, Key: c.Key, Base: c.Base, Next: c.Next, ID: c.ID})
		}
	}
	m.write(prepared, persisted)
}

func (m *modeBench) write(prepared []commit.Commit, persisted []commit.Persist) {
	if len(prepared) > 0 {
		verdicts, err := m.s.Prepare(m.b.Context(), prepared)
		for _, v := range verdicts {
			if v.Err != nil {
				err = v.Err
			}
		}
		if err != nil {
			m.b.Fatal(err)
		}
	}
	if len(persisted) > 0 {
		errs, err := m.s.Persist(m.b.Context(), persisted)
		for _, e := range errs {
			if e != nil {
				err = e
			}
		}
		if err != nil {
			m.b.Fatal(err)
		}
	}
	m.written += len(prepared) + len(persisted)
}
