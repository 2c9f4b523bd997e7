//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// describeGroup says what the coordinator knows of the group, for whoever looks for the reason why nothing goes on.
func (r *run) describeGroup(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	var b strings.Builder
	if r.plan.Mode.Protocol == "consumer" {
		all, err := r.admin.DescribeConsumerGroups(ctx, r.group)
		for _, g := range all {
			fmt.Fprintf(&b, "group %s, epoch %d, assignment epoch %d, %v", g.State, g.Epoch, g.AssignmentEpoch, g.Err)
			for _, m := range g.Members {
				fmt.Fprintf(&b, "; member %s, epoch %d, topics %v, has %v, shall have %v", m.MemberID, m.MemberEpoch, m.SubscribedTopics, m.Assignment, m.TargetAssignment)
			}
		}
		return fmt.Sprint(b.String(), " ", err)
	}
	all, err := r.admin.DescribeGroups(ctx, r.group)
	for _, g := range all {
		fmt.Fprintf(&b, "group %s, %v", g.State, g.Err)
		for i := range g.Members {
			m := &g.Members[i]
			fmt.Fprintf(&b, "; member %s", m.MemberID)
			if a, ok := m.Assigned.AsConsumer(); ok {
				fmt.Fprintf(&b, " has %v", a.Topics)
			}
		}
	}
	return fmt.Sprint(b.String(), " ", err)
}
