package committest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/stream"
)

// T1: the memory broker passes the suite that Kafka's producers pass.
func TestMemoryBrokerConforms(t *testing.T) {
	committest.RunPublisher(t, func(*testing.T) *committest.Publishing {
		b := committest.NewMemoryBroker(3)
		taken := map[*commit.Tenure]bool{}
		b.Holds = func(t *commit.Tenure) bool { return !taken[t] }
		b.MaxRecordBytes = 10_000
		b.SetAbsent("absent", true)
		epoch := stream.Epoch(0)
		return &committest.Publishing{
			Publisher: b, Ledger: b, Mode: commit.Transactional, Topic: "out", DeadLetters: "dead", Absent: "absent", TooLarge: 20_000,
			Tenure: func(partition int32) *commit.Tenure {
				epoch++
				return commit.NewTenure(commit.Ownership{
					Group: "g", Partition: committest.Part(partition), TopicGeneration: 1, Epoch: epoch, Nonce: stream.Nonce{1}, MemberID: "m",
				})
			},
			Take:   func(t *commit.Tenure) { taken[t] = true },
			Create: func() { b.SetAbsent("absent", false) },
			Visible: func(topic string) []committest.Seen {
				var seen []committest.Seen
				for i, o := range b.Outputs(topic) {
					seen = append(seen, committest.Seen{Output: o, Landing: commit.Landing{Topic: topic, Offset: int64(i)}})
				}
				return seen
			},
		}
	})
}

// T2: what the memory broker is told to refuse is in nobody's view: not visible, not in the ledger.
func TestMemoryBrokerFault(t *testing.T) {
	b := committest.NewMemoryBroker(1)
	b.Fault = func(*commit.Commit) error { return commit.ErrPermanent }
	s := committest.NewMemoryStore()
	tn := committest.Own(t, s, committest.Part(0), "a", 1)
	out, err := b.Publish(t.Context(), 0, []commit.Commit{committest.CommitOf(tn, "k", -1, 100)})
	if err != nil || len(out.Failed) != 1 || len(out.Positions) != 0 {
		t.Fatalf("got %+v, %v", out, err)
	}
	if diff := cmp.Diff([]string{}, b.Values()); diff != "" {
		t.Errorf("visible (-want +got):\n%s", diff)
	}
}
