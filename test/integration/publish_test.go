//go:build integration

package integration_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"milepost/internal/devstack"
	"milepost/test/stand"
)

// H9: the publish mode is the group's. A process with another one is refused while the group has members and says what to do; once the
// group is empty the mode changes with a warning, in both directions, and nothing is lost or repeated on the way.
func TestPublishModeChangesWithTheGroupEmpty(t *testing.T) {
	for _, protocol := range []string{"classic", "consumer"} {
		t.Run(protocol, func(t *testing.T) {
			j := newJob(t, useStack(t), 50)
			for i, mode := range []string{"transactional", "idempotent", "transactional"} {
				w := j.worker(t, mode, "--protocol", protocol, "--publish", mode)
				w.WaitLine(time.Minute, "recovered")
				if changed := len(w.Lines("publish mode changed, the group is empty")); changed != min(i, 1) {
					t.Errorf("round %d: the change was told %d times", i, changed)
				}
				j.drive(t, 2, nil)
				other := map[string]string{"transactional": "idempotent", "idempotent": "transactional"}[mode]
				intruder := j.worker(t, "intruder", "--protocol", protocol, "--publish", other)
				if code := intruder.Wait(30 * time.Second); code == 0 {
					t.Error("a process of another mode ended with 0")
				}
				intruder.WaitLine(time.Second, "stop every process of the group")
				if code := w.Terminate(30 * time.Second); code != 0 {
					t.Errorf("drain: exit code %d", code)
				}
			}
			// Nothing was killed, so even without transactions nothing is repeated.
			if v := j.judged(t, time.Minute); !v.Clean() {
				t.Errorf("after the changes: %s", v)
			}
		})
	}
}

// Design 12: topics that would refuse a record of the size that we may send are told at the start, with setting and remedy in numbers.
func TestRecordBytesAreChecked(t *testing.T) {
	j := newJob(t, useStack(t), 1)
	w := j.worker(t, "worker", "--max-record-bytes", "2000000")
	if code := w.Wait(time.Minute); code == 0 {
		t.Error("it ended with 0")
	}
	w.WaitLine(time.Second, "max.message.bytes is 1048588, must be at least 2000000")
}

// P25, A15: three brokers; leaders and coordinators move while the job publishes, for a broker is killed, comes back, and another is
// stopped in its tracks: nothing lost, nothing repeated.
func TestMainJobSurvivesMovingLeaders(t *testing.T) {
	if _, err := exec.LookPath("java"); err != nil && os.Getenv("JAVA_HOME") == "" {
		t.Skip("no Java for three real brokers")
	}
	kafka, err := devstack.StartKafka(stand.Limit(t, 3*time.Minute), devstack.KafkaConfig{Brokers: 3, Settings: map[string]string{
		"default.replication.factor": "3", "min.insync.replicas": "2",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kafka.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := *useStack(t)
	s.Brokers, s.Broker, s.Replicas = kafka.Addrs(), nil, 3
	j := newJob(t, &s, 100)
	first, second := j.worker(t, "first"), j.worker(t, "second")
	first.WaitLine(time.Minute, "recovered")
	second.WaitLine(time.Minute, "recovered")
	j.drive(t, 40, func(second int) {
		switch second {
		case 4:
			must(t, kafka.Kill(0))
		case 12:
			must(t, kafka.Restart(stand.Limit(t, time.Minute), 0))
		case 18:
			must(t, kafka.Pause(1))
		case 26:
			must(t, kafka.Resume(1))
		case 32:
			must(t, kafka.Kill(2))
		case 36:
			must(t, kafka.Restart(stand.Limit(t, time.Minute), 2))
		}
	})
	if v := j.judged(t, 3*time.Minute); !v.Clean() {
		t.Errorf("after the leaders moved: %s", v)
	}
	for _, p := range []*stand.Process{first, second} {
		if code := p.Terminate(40 * time.Second); code != 0 {
			t.Errorf("drain: exit code %d", code)
		}
	}
	if n := j.preparedLeft(t); n != 0 {
		t.Errorf("%d commits left prepared after the drain", n)
	}
}
