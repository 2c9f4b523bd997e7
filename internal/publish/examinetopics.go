package publish

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/doctor"
)

// topics examines the raw topic, the outputs and the ledger.
func (x *examiner) topics(ctx context.Context, e *doctor.Examination) {
	ledger := x.spec.Topics.Ledger()
	outputs := append([]string{x.spec.Topics.Matched(), x.spec.Topics.DeadLetter()}, x.spec.Outputs...)
	all := append([]string{x.spec.Raw, ledger}, outputs...)
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation, req.IncludeTopicAuthorizedOperations = false, true
	for _, name := range all {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = new(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, x.client)
	if err != nil {
		e.Fail("describe", "check the network and the rights", "%v", err)
		return
	}
	found := map[string]kmsg.MetadataResponseTopic{}
	for _, t := range resp.Topics {
		if t.Topic != nil {
			found[*t.Topic] = t
		}
	}
	for _, name := range all {
		rights := []int{aclWrite, aclDescribe}
		switch name {
		case x.spec.Raw:
			rights = []int{aclRead, aclDescribe}
		case ledger:
			rights = []int{aclRead, aclWrite, aclDelete, aclDescribe}
		}
		x.topic(e, name, found[name], rights)
	}
	if r, l := len(found[x.spec.Raw].Partitions), len(found[ledger].Partitions); r > 0 && l > 0 {
		e.Check(ledger+" partitions", r == l, doctor.Fail, "orchestrator partition reset, once the raw topic's partitions were drained; or another --prefix",
			"%d, the raw topic has %d", l, r)
	}
	x.topicSettings(ctx, e, slices.DeleteFunc(slices.Clone(all), func(name string) bool { return len(found[name].Partitions) == 0 }))
	if len(found[x.spec.Raw].Partitions) > 0 {
		x.clock(ctx, e)
	}
}

// topic examines one topic's partitions and what we may do with it.
func (x *examiner) topic(e *doctor.Examination, name string, t kmsg.MetadataResponseTopic, rights []int) {
	err := kerr.ErrorForCode(t.ErrorCode)
	switch {
	case is(err, kerr.UnknownTopicOrPartition), err == nil && len(t.Partitions) == 0:
		e.Fail(name, x.spec.remedy(name), "there is no such topic, or we may not see it")
		return
	case err != nil:
		e.Fail(name, "grant DESCRIBE on topic "+name+", or see what is wrong with it", "%v", err)
		return
	}
	replicas, leaderless, behind := len(t.Partitions[0].Replicas), 0, 0
	for _, p := range t.Partitions {
		replicas = min(replicas, len(p.Replicas))
		if p.Leader < 0 {
			leaderless++
		}
		if len(p.ISR) < len(p.Replicas) {
			behind++
		}
	}
	switch {
	case leaderless > 0:
		e.Fail(name, "bring the brokers of its partitions back", "%d of %d partitions have no leader", leaderless, len(t.Partitions))
	case behind > 0:
		e.Warn(name, "see why replicas lag behind", "%d of %d partitions are under-replicated", behind, len(t.Partitions))
	default:
		e.OK(name, "%s, all in sync", count(len(t.Partitions), "partition"))
	}
	e.Check(name+" replication", replicas >= leastReplicas, doctor.Warn, "give it three replicas: with fewer one broker's disk is the only copy", "factor %d", replicas)
	e.Check(name+" ACL", allowed(t.AuthorizedOperations, rights...), doctor.Fail, "grant "+aclNames(rights)+" on topic "+name,
		"%s", operations(t.AuthorizedOperations, nil))
}

func aclNames(ops []int) string {
	names := make([]string, len(ops))
	for i, op := range ops {
		names[i] = kmsg.ACLOperation(op).String()
	}
	return strings.Join(names, ", ")
}

// topicSettings examines what the ledger's promise and the outputs' durability rest on.
func (x *examiner) topicSettings(ctx context.Context, e *doctor.Examination, topics []string) {
	if len(topics) == 0 {
		return
	}
	described, err := x.admin.DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		e.Warn("settings", "grant DESCRIBE_CONFIGS on the topics", "not told: %v", err)
		return
	}
	for _, name := range topics {
		r, err := described.On(name, nil)
		if err == nil {
			err = r.Err
		}
		if err != nil {
			e.Warn(name+" settings", "grant DESCRIBE_CONFIGS on the topic", "not told: %v", err)
			continue
		}
		values := map[string]string{}
		for _, c := range r.Configs {
			values[c.Key] = c.MaybeValue()
		}
		x.judgeSettings(e, name, values)
	}
}

func (x *examiner) judgeSettings(e *doctor.Examination, name string, values map[string]string) {
	if name == x.spec.Topics.Ledger() {
		wanted := ledgerSettings()
		for _, key := range []string{"cleanup.policy", "retention.ms", "retention.bytes"} {
			e.Check(name+" "+key, values[key] == wanted[key], doctor.Fail,
				fmt.Sprintf("kafka-configs.sh --alter --entity-type topics --entity-name %s --add-config %s=%s: nothing of it may expire", name, key, wanted[key]),
				"%s", values[key])
		}
	}
	if n, err := strconv.Atoi(values["min.insync.replicas"]); err == nil && name != x.spec.Raw {
		e.Check(name+" min.insync.replicas", n >= leastInSync, doctor.Warn, "set min.insync.replicas=2 (with three replicas): an acknowledged record is on two disks", "%d", n)
	}
	if v, ok := values["unclean.leader.election.enable"]; ok {
		e.Check(name+" unclean leader election", v == "false", doctor.Warn, "set unclean.leader.election.enable=false: it takes acknowledged records back", "%s", v)
	}
	if n, err := strconv.ParseInt(values["max.message.bytes"], 10, 64); err == nil && x.spec.MaxRecordBytes > 0 && name != x.spec.Raw {
		e.Check(name+" max.message.bytes", n >= int64(x.spec.MaxRecordBytes), doctor.Fail,
			fmt.Sprintf("set max.message.bytes to %d or more, or lower --max-record-bytes", x.spec.MaxRecordBytes), "%d", n)
	}
}

// clock compares the newest raw record's timestamp with our clock: the brokers do not tell theirs.
func (x *examiner) clock(ctx context.Context, e *doctor.Examination) {
	const name = "clock"
	listed, err := x.admin.ListMaxTimestampOffsets(ctx, x.spec.Raw)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		e.Warn(name, "ask again when the raw topic is readable", "not told: %v", err)
		return
	}
	newest := int64(-1)
	listed.Each(func(l kadm.ListedOffset) { newest = max(newest, l.Timestamp) })
	if newest <= 0 {
		e.OK(name, "the raw topic is empty: nothing to compare with")
		return
	}
	ahead := time.UnixMilli(newest).Sub(x.now())
	e.Check(name, ahead <= clockAhead, doctor.Warn, "synchronise the clocks of producers, brokers and this machine (NTP)",
		"the newest raw record is of %s", time.UnixMilli(newest).UTC().Format("2006-01-02T15:04:05.000Z07:00"))
}
