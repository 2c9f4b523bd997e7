//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"milepost/test/chaos/judge"
)

// The kinds of faults.
const (
	pauseWorker   = "pause-worker"   // SIGSTOP for longer than a session, then SIGCONT
	killWorker    = "kill-worker"    // kill -9, and a start after a while
	rollWorkers   = "roll-workers"   // each in turn ended in order and started
	killBroker    = "kill-broker"    // kill -9, and a start after a while
	pauseBroker   = "pause-broker"   // SIGSTOP, SIGCONT
	moveLeaders   = "move-leaders"   // of every partition, the coordinators' too; several brokers
	killPostgres  = "kill-postgres"  // kill -9 of all its processes, and a start after a while
	pausePostgres = "pause-postgres" // SIGSTOP of all its processes, SIGCONT
	fillDisk      = "fill-disk"      // of Postgres
	slowLink      = "slow-link"      // every piece late, both ways
	cutLink       = "cut-link"       // connections reset and refused
	blackHole     = "black-hole"     // nothing passes, connections stay
	loseAnswers   = "lose-answers"   // requests pass, answers do not; then the connections are reset
	deleteGroup   = "delete-group"   // of killed workers, while one of them stands still and wakes later
	resetOffsets  = "reset-offsets"  // the same, and the group's offsets are set to the log's start or end
	deleteRecords = "delete-records" // of the raw topic, below the frontier
	addPartitions = "add-partitions" // with the producer stopped, and the operator's command
	stepClock     = "step-clock"     // the wall clock of one worker, and back
)

// fault is one fault of a plan.
type fault struct {
	Kind string        `json:"kind"`
	At   time.Duration `json:"at"`  // after the start
	For  time.Duration `json:"for"` // what it is takes so long, or a step of it
	Slot int           `json:"slot"`
	Node int           `json:"node"`
	Link string        `json:"link,omitempty"` // kafka, postgres or both
	// Amount is milliseconds of a delay, seconds of a clock step, or a choice of variant.
	Amount int64 `json:"amount,omitempty"`
}

// String gives the fault on one line.
func (f fault) String() string {
	s := fmt.Sprintf("%s at %s for %s", f.Kind, f.At.Round(time.Millisecond), f.For.Round(time.Millisecond))
	s += " " + strings.Join(f.parts(), " ")
	if f.Amount != 0 {
		s += fmt.Sprintf(" (%d)", f.Amount)
	}
	return s
}

// MarshalJSON gives times as text.
func (f fault) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"kind": f.Kind, "at": f.At.Round(time.Millisecond).String(), "for": f.For.Round(time.Millisecond).String(), "parts": f.parts(), "amount": f.Amount,
	})
}

// parts are what the fault breaks: two faults that share one do not overlap.
func (f fault) parts() []string {
	worker := fmt.Sprintf("worker-%d", f.Slot)
	switch f.Kind {
	case pauseWorker, killWorker:
		return []string{worker}
	case stepClock:
		return []string{fmt.Sprintf("clock-%d", f.Slot)}
	case rollWorkers, deleteGroup, resetOffsets:
		return everyWorker()
	case addPartitions:
		return []string{"raw-topic"}
	case deleteRecords:
		return []string{"raw-topic"}
	case killBroker, pauseBroker:
		return []string{"brokers"} // one at a time: two of three are no quorum
	case moveLeaders:
		return []string{"leaders"}
	case killPostgres, pausePostgres, fillDisk:
		return []string{"postgres"}
	}
	var parts []string
	for _, link := range []string{linkKafka, linkPostgres} {
		if f.Link == link || f.Link == linkBoth {
			parts = append(parts, link+"-link-"+worker)
		}
	}
	return parts
}

const (
	linkKafka    = "kafka"
	linkPostgres = "postgres"
	linkBoth     = "both"
)

// workers of a run.
const workers = 3

func everyWorker() (parts []string) {
	for i := range workers {
		parts = append(parts, fmt.Sprintf("worker-%d", i))
	}
	return parts
}

// plan is what a seed makes of a run.
type plan struct {
	Seed    uint64        `json:"seed"`
	Seconds int           `json:"seconds"`
	Brokers int           `json:"brokers"`
	Mode    judge.Mode    `json:"mode"`
	Solve   time.Duration `json:"solve"`  // solver time
	Refuse  bool          `json:"refuse"` // keys go to quarantine; not where partitions are added
	Faults  []fault       `json:"faults"`
}

// modes are all there are: deferred without transactions is refused by the program.
func modes() []judge.Mode {
	var all []judge.Mode
	for _, protocol := range []string{"classic", "consumer"} {
		all = append(all, judge.Mode{Protocol: protocol, Durability: "prepared", Publish: "transactional"},
			judge.Mode{Protocol: protocol, Durability: "deferred", Publish: "transactional"},
			judge.Mode{Protocol: protocol, Durability: "prepared", Publish: "idempotent"})
	}
	return all
}

// kindsOf are the faults that a stack can have.
func kindsOf(brokers int) []string {
	kinds := []string{
		pauseWorker, pauseWorker, killWorker, killWorker, rollWorkers, killBroker, pauseBroker, killPostgres, pausePostgres, fillDisk,
		slowLink, cutLink, cutLink, blackHole, blackHole, loseAnswers, loseAnswers, loseAnswers, deleteGroup, resetOffsets, deleteRecords, stepClock,
	}
	if brokers > 1 {
		kinds = append(kinds, moveLeaders, moveLeaders)
	}
	return kinds
}

// newPlan makes a run's plan: the same seed, length and brokers give the same plan. mode is a place in modes; -1: the seed's choice.
func newPlan(seed uint64, seconds, brokers, mode int) plan {
	r := rand.New(rand.NewPCG(seed, 0xc4a05)) //nolint:gosec // a schedule, no secret
	p := plan{Seed: seed, Seconds: seconds, Brokers: brokers, Solve: []time.Duration{0, 0, time.Millisecond, 20 * time.Millisecond}[r.IntN(4)]}
	all := modes()
	drawn := r.IntN(len(all))
	if mode < 0 {
		mode = drawn
	}
	p.Mode = all[mode%len(all)]
	p.Refuse = r.IntN(4) > 0
	deck := kindsOf(brokers)
	if !p.Refuse && seconds >= 60 { // where nothing else moves the group, it looks for new partitions every five minutes only
		deck = append(deck, addPartitions)
	}
	busy := map[string]time.Duration{}
	var dealt []string
	end := time.Duration(seconds) * time.Second
	for at := 2 * time.Second; at < end-3*time.Second; at += between(r, 400*time.Millisecond, 5*time.Second) {
		if len(dealt) == 0 {
			dealt = slices.Clone(deck)
			r.Shuffle(len(dealt), func(i, k int) { dealt[i], dealt[k] = dealt[k], dealt[i] })
		}
		f := draw(r, dealt[0], at, brokers)
		if slices.ContainsFunc(f.parts(), func(part string) bool { return busy[part] > at }) {
			dealt = append(dealt[1:], dealt[0]) // later
			continue
		}
		dealt = dealt[1:]
		if f.Kind == addPartitions { // once
			deck = slices.DeleteFunc(deck, func(kind string) bool { return kind == addPartitions })
		}
		for _, part := range f.parts() {
			busy[part] = at + f.For + time.Second
		}
		p.Faults = append(p.Faults, f)
	}
	return p
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

// draw makes one fault of a kind.
func draw(r *rand.Rand, kind string, at time.Duration, brokers int) fault {
	f := fault{Kind: kind, At: at, Slot: r.IntN(workers), Node: r.IntN(brokers), Link: []string{linkKafka, linkPostgres, linkBoth}[r.IntN(3)]}
	seconds := func(least, most float64) {
		f.For = between(r, time.Duration(least*float64(time.Second)), time.Duration(most*float64(time.Second)))
	}
	switch kind {
	case pauseWorker:
		seconds(session.Seconds()+1, 3*session.Seconds())
	case killWorker:
		seconds(0, 4)
	case rollWorkers:
		seconds(0, 2) // between one and the next
	case killBroker:
		seconds(0, 5)
	case pauseBroker, pausePostgres, blackHole:
		seconds(1, 8)
	case killPostgres, cutLink:
		seconds(0, 5)
	case fillDisk:
		seconds(2, 7)
	case slowLink:
		seconds(2, 10)
		f.Amount = 5 + r.Int64N(300)
	case loseAnswers:
		seconds(0.05, 2)
	case deleteGroup, resetOffsets:
		seconds(1, 6)
		f.Amount = r.Int64N(4)
	case stepClock:
		seconds(1, 15)
		f.Amount = []int64{-86_400, -3600, -5, 5, 3600, 86_400 * 30}[r.IntN(6)]
	case addPartitions, moveLeaders, deleteRecords:
	}
	return f
}
