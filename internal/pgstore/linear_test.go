package pgstore_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/jackc/pgx/v5"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/pgstore"
	"milepost/internal/stream"
)

var linearRounds = flag.Int("linear-rounds", 0, "histories that TestHistoriesAreLinearizable judges; 0: 60, with -short 15")

// I13, I5, P1, P2, P5, P6, P35, P38, H11, H16: several owners, all of one group generation, zombies among them, work on one partition at once,
// over connections that lose statements and answers, while sessions are ended and rows are locked. What each client saw is a history, and each
// history is one of a fenced lock with CAS registers and a register that only rises.
func TestHistoriesAreLinearizable(t *testing.T) {
	rounds := *linearRounds
	if rounds == 0 {
		rounds = 60
		if testing.Short() {
			rounds = 15
		}
	}
	l := newLinear(t, &badWire{lose: 20})
	for round := range rounds {
		if verdict := l.round(round, true); verdict != porcupine.Ok {
			t.Fatalf("round %d: the history is %s", round, verdict)
		}
	}
	t.Logf("%d histories, %d operations, %d without an answer, %d statements cut", rounds, l.operations, l.unknown, l.wire.lost)
	if l.unknown == 0 {
		t.Error("no answer was ever lost")
	}
}

// The judge is worth something: a store with one guard fewer in its SQL is caught.
func TestBrokenStoresAreNotLinearizable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, old, new string }{
		{"no fence", "WHERE o.epoch = f.epoch AND o.nonce = f.nonce\n    ORDER", "WHERE true\n    ORDER"},
		{"epoch without nonce", "AND o.nonce = f.nonce\n    ORDER", "ORDER"},
		{"nonce without epoch", "WHERE o.epoch = f.epoch AND o.nonce = f.nonce\n    ORDER", "WHERE o.epoch >= f.epoch\n    ORDER"},
		{"prepare without its base", "c.prepared_generation = i.base_generation AND c.prepared_offset = i.base_offset", "true"},
		{"promotion of whatever stands there", "AND c.prepared_offset = i.at_offset AND c.prepared_id = i.id", ""},
		{"persist over what is prepared", "AND NOT c.has_prepared AND", "AND"},
		{"a frontier that goes back", "> (p.topic_generation, p.next_offset, p.leader_epoch)\n                                THEN i.next_offset", "> (0, 0, 0) THEN i.next_offset"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLinear(t, &badWire{old: c.old, new: c.new})
			for round := range 200 {
				if verdict := l.round(round, false); verdict == porcupine.Illegal {
					t.Logf("caught by history %d", round)
					l.wire.mustHaveChanged(t)
					return
				}
			}
			l.wire.mustHaveChanged(t)
			t.Error("200 histories were found in order")
		})
	}
}

// S4, H15h, I13: the two locks that order a write under way and an acquisition, each shown to be needed: without either the write of the
// former owner lands after the new owner has read the row. Nothing is left to chance: the write waits at a row that the test locks.
func TestLocksOrderWritesAndAcquisitions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, old, new string
		want           porcupine.CheckResult
	}{
		{"as it is", "", "", porcupine.Ok},
		{"a write that does not lock its owner row", "FOR KEY SHARE OF o", "", porcupine.Illegal},
		{"an acquisition that only updates", "FOR UPDATE OF o", "", porcupine.Illegal},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLinear(t, &badWire{old: c.old, new: c.new})
			h := &linHistory{start: time.Now()}
			p := committest.Part(0)
			a, b := l.client(h, p, 0), l.client(h, p, 1)
			a.acquire()
			first := a.commit("a", 0, 100)
			a.prepare(first)
			gate, watch := connect(t, l.dsn), connect(t, l.dsn)
			execute(t, gate, "BEGIN")
			execute(t, gate, "SELECT FROM checkpoint FOR UPDATE")
			var wg sync.WaitGroup
			second := a.commit("a", 100, 101)
			wg.Go(func() { a.prepare(second) })
			eventually(t, "the write waits at the row", func() bool { return waiters(t, watch, "%fence AS%") == 1 })
			took := make(chan struct{})
			wg.Go(func() {
				defer close(took)
				b.acquire()
				b.restore("a")
			})
			eventually(t, "the acquisition waits or is done", func() bool {
				select {
				case <-took:
					return true
				default:
					return waiters(t, watch, "%locked AS%") == 1
				}
			})
			execute(t, gate, "COMMIT")
			wg.Wait()
			b.restore("a")
			l.wire.mustHaveChanged(t)
			if got := l.judge(h, c.want == porcupine.Ok); got != c.want {
				t.Errorf("the history is %s, want %s", got, c.want)
			}
		})
	}
}

// linear makes histories of one database.
type linear struct {
	t       *testing.T
	dsn     string
	wire    *badWire
	stores  []*pgstore.Store
	clean   *pgstore.Store // its connections lose nothing
	killer  *pgx.Conn
	locker  *pgx.Conn
	id      atomic.Int64
	seed    uint64
	unknown int

	operations int
}

func newLinear(t *testing.T, w *badWire) *linear {
	t.Helper()
	l := &linear{t: t, dsn: migrated(t), wire: w, seed: rand.Uint64()}
	t.Logf("seed %d", l.seed)
	w.rng = rand.New(rand.NewPCG(l.seed, 0))
	cfg := pgstore.DefaultConfig()
	cfg.DSN, cfg.MaxConns, cfg.LockTimeout, cfg.StatementTimeout = l.dsn, 4, time.Minute, 2*time.Minute
	for range 2 {
		s, err := pgstore.OpenDialing(t.Context(), cfg, w.dial)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		l.stores = append(l.stores, s)
	}
	l.clean, l.killer, l.locker = store(t, l.dsn), connect(t, l.dsn), connect(t, l.dsn)
	return l
}

const (
	linClients = 4
	linSteps   = 14
)

// round makes one history on a partition of its own and judges it.
func (l *linear) round(n int, faults bool) porcupine.CheckResult {
	l.t.Helper()
	p := committest.Part(int32(n))
	h := &linHistory{start: time.Now()}
	var wg, trouble sync.WaitGroup
	done := make(chan struct{})
	if faults {
		trouble.Go(func() { l.trouble(p, done) })
	}
	for i := range linClients {
		c := l.client(h, p, i)
		c.rng = rand.New(rand.NewPCG(l.seed, uint64(n*linClients+i+1)))
		wg.Go(func() {
			for range linSteps {
				c.step()
			}
		})
	}
	wg.Wait()
	close(done)
	trouble.Wait()
	last := l.client(h, p, linClients)
	last.store = l.clean
	last.epochs()
	for _, key := range linKeys() {
		last.restore(key)
	}
	return l.judge(h, true)
}

// trouble ends sessions of the stores and locks rows for a moment, so that statements wait between their fence and their write.
func (l *linear) trouble(p stream.Partition, done <-chan struct{}) {
	kill, lock := l.killer, l.locker
	rng := rand.New(rand.NewPCG(l.seed, uint64(p.Number)))
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Duration(rng.IntN(8)) * time.Millisecond):
		}
		if rng.IntN(4) == 0 {
			execute(l.t, kill, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name = 'milepost' ORDER BY random() LIMIT 1`)
			continue
		}
		execute(l.t, lock, "BEGIN")
		execute(l.t, lock, "SELECT FROM checkpoint WHERE partition = $1 ORDER BY key FOR UPDATE", p.Number)
		execute(l.t, lock, "SELECT pg_sleep(0.003)")
		execute(l.t, lock, "COMMIT")
	}
}

// judge asks porcupine; an unexpected illegal history is drawn into a file for who has to understand it.
func (l *linear) judge(h *linHistory, explain bool) porcupine.CheckResult {
	l.t.Helper()
	l.operations += len(h.ops)
	l.unknown += h.unknown
	model := linModel()
	verdict, info := porcupine.CheckOperationsVerbose(model, h.ops, time.Minute)
	if verdict == porcupine.Illegal && explain && l.wire.old == "" {
		f, err := os.CreateTemp("", "milepost-history-*.html")
		if err != nil {
			l.t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if err := porcupine.Visualize(model, info, f); err != nil {
			l.t.Error(err)
		}
		l.t.Logf("the history is drawn in %s", f.Name())
	}
	return verdict
}

// linHistory is what the clients of one partition asked and were answered.
type linHistory struct {
	start time.Time
	nonce atomic.Int32

	mu      sync.Mutex
	ops     []porcupine.Operation
	unknown int
}

func (h *linHistory) now() int64 { return time.Since(h.start).Nanoseconds() }

// add notes an operation that was called at the time and has just been answered.
func (h *linHistory) add(client int, called int64, in linInput, out linOutput) {
	h.mu.Lock()
	defer h.mu.Unlock()
	returned := h.now()
	if out.Verdict == linUnknown {
		// It may be done at any later time (H11).
		returned = math.MaxInt64
		h.unknown++
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: called, Output: out, Return: returned})
	// Who conflicts has passed the fence, and read the row later.
	if out.Verdict == linConflict || out.Verdict == linBusy {
		in.Kind, out.Verdict = linFenced, linOK
		h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: called, Output: out, Return: returned})
	}
}

func (l *linear) client(h *linHistory, p stream.Partition, n int) *linClient {
	return &linClient{
		l: l, h: h, n: n, store: l.stores[n%len(l.stores)], partition: p,
		known: map[stream.Key]commit.Restored{}, tried: map[stream.Key]*commit.Commit{},
	}
}

// linOutcome translates an item's verdict.
func linOutcome(err error) linOutput {
	if err == nil {
		return linOutput{Verdict: linOK}
	}
	var (
		conflict *commit.ConflictError
		busy     *commit.BusyError
		fenced   *commit.FencedError
	)
	switch {
	case errors.As(err, &conflict):
		return linOutput{Verdict: linConflict, Rev: conflict.Actual.Offset}
	case errors.As(err, &busy):
		return linOutput{Verdict: linBusy, Prep: busy.Prepared.Offset}
	case errors.As(err, &fenced):
		return linOutput{Verdict: linRefused, Epoch: int64(fenced.Owner)}
	}
	return linOutput{Verdict: linUnknown}
}

func linKeys() []stream.Key { return []stream.Key{"a", "b"} }

// linClient is a process that believes to own the partition, or did once.
type linClient struct {
	l         *linear
	h         *linHistory
	n         int
	store     *pgstore.Store
	partition stream.Partition
	rng       *rand.Rand
	tenure    *commit.Tenure
	known     map[stream.Key]commit.Restored // as it read them last
	tried     map[stream.Key]*commit.Commit  // what it prepared last, or meant to
}

func (c *linClient) ctx() context.Context { return context.WithoutCancel(c.l.t.Context()) }

// asks is the input of an operation under the client's tenure.
func (c *linClient) asks(kind linKind, register string) linInput {
	return linInput{Kind: kind, Register: register, Epoch: int64(c.tenure.Epoch), Nonce: c.tenure.Nonce[0]}
}

func (c *linClient) step() {
	key := linKeys()[c.rng.IntN(2)]
	switch n := c.rng.IntN(100); {
	case c.tenure == nil || n < 12:
		c.acquire()
	case n < 15:
		// The same number with another nonce: what a database restored to an earlier time gives (H16).
		c.tenure = tenureOf(c.partition, c.tenure.Epoch, 250)
	case n < 20:
		c.holds()
	case n < 35:
		c.restore(key)
	case n < 70:
		c.restore(key)
		c.prepareNext()
	case n < 85:
		c.restore(key)
		at := c.known[key].Prepared
		if c.rng.IntN(3) == 0 {
			at = c.tried[key] // which may have met another commit of the same revision
		}
		if at != nil {
			c.promote(key, at.Revision, at.ID, string(at.Next.State))
		}
	case n < 90:
		c.persistNext(key)
	case n < 95:
		c.save(firstFrontier + c.rng.Int64N(20))
		c.start()
	default:
		c.start()
	}
}

func (c *linClient) epochs() (commit.OwnerRow, bool) {
	called := c.h.now()
	rows, err := c.store.Epochs(c.ctx(), "g", []stream.Partition{c.partition})
	if err != nil {
		return commit.OwnerRow{}, false // a read without an answer says nothing
	}
	c.h.add(c.n, called, linInput{Kind: linEpochs}, linOutput{Verdict: linOK, Epoch: int64(rows[0].Epoch)})
	return rows[0], true
}

func (c *linClient) acquire() {
	row, ok := c.epochs()
	if !ok {
		return
	}
	nonce := byte(c.h.nonce.Add(1))
	in := linInput{Kind: linAcquire, Epoch: int64(row.Epoch), Nonce: nonce}
	called := c.h.now()
	won, err := c.store.Acquire(c.ctx(), []commit.Claim{claimOf(row, fmt.Sprint(c.n), nonce)})
	switch {
	case err != nil:
		c.h.add(c.n, called, in, linOutput{Verdict: linUnknown})
	case !won[0]:
		c.h.add(c.n, called, in, linOutput{Verdict: linNo})
		return
	default:
		c.h.add(c.n, called, in, linOutput{Verdict: linOK})
	}
	c.tenure = tenureOf(c.partition, row.Epoch+1, nonce)
}

func (c *linClient) holds() {
	called := c.h.now()
	holds, err := c.store.Holds(c.ctx(), []*commit.Tenure{c.tenure})
	if err != nil {
		return
	}
	out := linOutput{Verdict: linNo}
	if holds[0] {
		out.Verdict = linOK
	}
	c.h.add(c.n, called, c.asks(linHolds, ""), out)
}

func (c *linClient) restore(key stream.Key) {
	tenure := c.tenure
	if tenure == nil {
		tenure = tenureOf(c.partition, 0, 0)
	}
	called := c.h.now()
	rows, err := c.store.Restore(c.ctx(), tenure, []stream.Key{key})
	if err != nil {
		return
	}
	r := rows[0]
	c.known[key] = r
	out := linOutput{Verdict: linOK, Rev: r.Checkpoint.Revision.Offset, Cur: string(r.Checkpoint.State)}
	if r.Prepared != nil {
		out.Prep, out.Next = r.Prepared.Revision.Offset, string(r.Prepared.Next.State)
	}
	c.h.add(c.n, called, linInput{Kind: linRestore, Register: string(key)}, out)
}

// commit makes a commit that is nobody else's; offset 0 for no base.
func (c *linClient) commit(key stream.Key, base, offset int64) commit.Commit {
	at := committest.CommitOf(c.tenure, key, -1, offset)
	from := stream.Revision{}
	if base > 0 {
		from = committest.Rev(base)
	}
	at.Next.State = fmt.Appendf(nil, "%d by %d", c.l.id.Add(1), c.n)
	return commit.NewCommit(c.tenure, key, from, commit.Plan{Next: at.Next, Outputs: at.Outputs})
}

// over gives the offset that the client takes for the key's last one, at times wrongly, and the next.
func (c *linClient) over(key stream.Key) (base, next int64) {
	r := c.known[key]
	base = r.Checkpoint.Revision.Offset
	if r.Prepared != nil && c.rng.IntN(8) > 0 {
		base = r.Prepared.Revision.Offset
	}
	return base, max(base, 99) + 1 + c.rng.Int64N(2)
}

// prepareNext prepares the next commit of one key or of both in one statement; without an answer it sends the same again.
func (c *linClient) prepareNext() {
	var batch []commit.Commit
	for _, key := range linKeys()[c.rng.IntN(2):] {
		base, next := c.over(key)
		batch = append(batch, c.commit(key, base, next))
		c.tried[key] = &batch[len(batch)-1]
	}
	for range 3 {
		if c.prepare(batch...) {
			return
		}
	}
}

// prepare reports whether there was an answer.
func (c *linClient) prepare(batch ...commit.Commit) bool {
	called := c.h.now()
	verdicts, err := c.store.Prepare(c.ctx(), batch)
	answered := err == nil
	for i := range batch {
		in := c.asks(linPrepare, string(batch[i].Key))
		in.Base, in.Rev, in.ID = batch[i].Base.Offset, batch[i].Revision.Offset, string(batch[i].Next.State)
		out := linOutput{Verdict: linUnknown}
		if err == nil {
			if out = linOutcome(verdicts[i].Err); verdicts[i].Current {
				out.Verdict = linCurrent
			}
		}
		answered = answered && out.Verdict != linUnknown
		c.h.add(c.n, called, in, out)
	}
	return answered
}

func (c *linClient) promote(key stream.Key, rev stream.Revision, id commit.ID, state string) {
	in := c.asks(linPromote, string(key))
	in.Rev, in.ID = rev.Offset, state
	called := c.h.now()
	errs, err := c.store.Promote(c.ctx(), []commit.Promotion{{Tenure: c.tenure, Key: key, Revision: rev, ID: id}})
	if err == nil {
		err = errs[0]
	}
	c.h.add(c.n, called, in, linOutcome(err))
}

func (c *linClient) persistNext(key stream.Key) {
	base, next := c.over(key)
	at := c.commit(key, base, next)
	in := c.asks(linPersist, string(key))
	in.Base, in.Rev, in.ID = base, next, string(at.Next.State)
	called := c.h.now()
	errs, err := c.store.Persist(c.ctx(), []commit.Persist{{Tenure: c.tenure, Key: key, Base: at.Base, Next: at.Next, ID: at.ID}})
	if err == nil {
		err = errs[0]
	}
	c.h.add(c.n, called, in, linOutcome(err))
}

func (c *linClient) save(next int64) {
	in := c.asks(linSave, frontierRegister)
	in.Rev = next
	called := c.h.now()
	errs, err := c.store.SaveFrontier(c.ctx(), []commit.FrontierWrite{{
		Tenure: c.tenure, Frontier: stream.Frontier{Next: committest.Rev(next), LeaderEpoch: 5}, LedgerFloor: 10,
	}})
	if err == nil {
		err = errs[0]
	}
	c.h.add(c.n, called, in, linOutcome(err))
}

func (c *linClient) start() {
	called := c.h.now()
	starts, err := c.store.Start(c.ctx(), []*commit.Tenure{c.tenure})
	if err == nil {
		c.h.add(c.n, called, c.asks(linStart, frontierRegister), linOutput{Verdict: linOK, Rev: starts[0].Frontier.Next.Offset})
		return
	}
	if out := linOutcome(err); out.Verdict == linRefused {
		c.h.add(c.n, called, c.asks(linStart, frontierRegister), out)
	}
}
