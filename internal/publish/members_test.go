package publish

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// H9: whether a group is empty is told for both protocols, and for a group that does not exist.
func TestMembers(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		want := func(group string, n int) {
			t.Helper()
			if got, err := Members(r.ctx(), r.admin, group); err != nil || got != n {
				t.Errorf("%s has %d members, %v, want %d", group, got, err, n)
			}
		}
		want(r.group, 1)
		want(r.group+".never", 0)
		next := r.group + ".next"
		assigned := make(chan struct{}, 10)
		member := r.client(kgo.ConsumerGroup(next), kgo.ConsumeTopics(r.raw), kgo.ServerSideBalancer(), kgo.DisableAutoCommit(),
			kgo.Balancers(kgo.CooperativeStickyBalancer()),
			kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { assigned <- struct{}{} }))
		<-assigned
		want(next, 1)
		if err := member.LeaveGroupContext(r.ctx()); err != nil {
			t.Fatal(err)
		}
		want(next, 0)
		if err := r.member.LeaveGroupContext(r.ctx()); err != nil {
			t.Fatal(err)
		}
		want(r.group, 0)
	})
}
