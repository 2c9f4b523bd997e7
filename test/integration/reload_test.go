//go:build integration

package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"milepost/test/stand"
)

// regions is a catalog of the north of Delaware and of all else, with a version, the north's lanes and the else's part of the map.
func (j *job) regions(t *testing.T, version, lanes int, box string) {
	t.Helper()
	text := fmt.Sprintf(`version = %d
[[region]]
id = "north"
graph = %q
bbox = [-75.94, 39.37, -75.23, 39.91]
coverage = ["dr41", "dr44"]
overlap = ["dr40", "dr43", "dr46"]
lanes = %d
max_replicas = 3

[[region]]
id = "rest"
graph = %q
bbox = %s
coverage = [
  "dqf4", "dqf5", "dqf6", "dqf7", "dqfd", "dqfe", "dqfh", "dqfj", "dqfk", "dqfq", "dqfs",
  "dqfm", "dqfn", "dqfp", "dqfr", "dqft", "dr40", "dr42", "dr43", "dr46",
]
overlap = ["dr41", "dr44"]
`, version, j.roadMap, lanes, j.roadMap, box)
	if j.catalog == "" {
		j.catalog = filepath.Join(t.TempDir(), "regions.toml")
	}
	// Renamed into place, as an operator is told to: nobody reads half of it.
	must(t, os.WriteFile(j.catalog+".new", []byte(text), 0o600))
	must(t, os.Rename(j.catalog+".new", j.catalog))
}

// A7, A20, F29: SIGHUP has real processes take a new catalog while vehicles drive: first the matchers, then the worker. The new graph and lanes
// come into force, nothing is lost or repeated. A catalog that is not good changes nothing.
func TestHangupReloadsCatalog(t *testing.T) {
	j := newJob(t, useStack(t), 60)
	j.regions(t, 1, 3, "[-76, 38.3, -74.8, 40]")
	w := j.worker(t, "worker", "--solver", "remote", "--solver-secret", "shared")
	w.WaitLine(2*time.Minute, "recovered")
	north, rest := j.matcher(t, "north", "--region", "north"), j.matcher(t, "rest", "--region", "rest")
	all := []*stand.Process{north, rest, w}
	reload := func(says string) {
		t.Helper()
		for _, p := range all {
			p.Signal(syscall.SIGHUP)
			p.WaitLine(2*time.Minute, says)
		}
	}
	north.WaitLine(2*time.Minute, `"msg":"matcher"`)
	rest.WaitLine(2*time.Minute, `"msg":"matcher"`)
	j.drive(t, 8, func(second int) {
		switch second {
		case 2:
			j.regions(t, 2, 0, "[-76, 38.3, -74.8, 40]") // no lanes: not good
			reload("lanes is 0, must be at least 1")
		case 4:
			j.regions(t, 2, 5, "[-76, 38.3, -75.06, 39.95]")
			reload(`"outcome":"taken","version":2`)
		}
	})
	if v := j.judged(t, 2*time.Minute); !v.Clean() {
		t.Errorf("after the reload: %s", v)
	}
	topic := j.prefix + ".solve.north"
	topics, err := kadm.NewClient(j.client).ListTopics(t.Context(), topic)
	if err != nil || len(topics[topic].Partitions) != 5 {
		t.Errorf("requests of region north have %d partitions, %v, want 5", len(topics[topic].Partitions), err)
	}
	for _, p := range []*stand.Process{w, north, rest} {
		if code := p.Terminate(40 * time.Second); code != 0 {
			t.Errorf("drain: exit code %d", code)
		}
	}
}

// A20: a SIGHUP that comes while a worker waits for its database does not end it: it is served once there is a worker.
func TestHangupBeforeTheStart(t *testing.T) {
	j := newJob(t, useStack(t), 1)
	j.regions(t, 1, 3, "[-76, 39.3, -75, 40]")
	j.dsn = "postgres://nobody@127.0.0.1:1/none?sslmode=disable" // nothing listens there
	w := j.worker(t, "worker")
	w.WaitLine(2*time.Minute, "waiting for the database")
	w.Signal(syscall.SIGHUP)
	if code := w.Terminate(30 * time.Second); code != 0 {
		t.Errorf("exit code %d, want 0: the signal of before must not have ended it", code)
	}
}
