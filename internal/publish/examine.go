package publish

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"milepost/internal/doctor"
)

// Kafka's AclOperation codes, as bits of authorized_operations.
const (
	aclRead     = 3
	aclWrite    = 4
	aclDelete   = 6
	aclDescribe = 8
)

const (
	leastOffsetsRetention = 24 * time.Hour
	leastReplicas         = 3
	leastInSync           = 2
	clockAhead            = 5 * time.Second
	transactionTimeout    = 10 * time.Second // the longest of ours
)

// examiner looks at a cluster for one group and its topics.
type examiner struct {
	client *kgo.Client
	admin  *kadm.Client
	group  string
	spec   TopicsSpec
	now    func() time.Time
}

// Examine looks at brokers, topics and rights: what is wrong comes with its remedy (D1). It changes nothing.
func Examine(ctx context.Context, client *kgo.Client, group string, spec TopicsSpec) []doctor.Finding {
	x := examiner{client: client, admin: kadm.NewClient(client), group: group, spec: spec, now: time.Now}
	brokers := doctor.Examination{Area: "kafka"}
	if !x.brokers(ctx, &brokers) {
		return brokers.Findings
	}
	topics := doctor.Examination{Area: "topics"}
	x.topics(ctx, &topics)
	return append(brokers.Findings, topics.Findings...)
}

// brokers examines the cluster; false: it cannot be reached.
func (x *examiner) brokers(ctx context.Context, e *doctor.Examination) bool {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "milepost", "1"
	versions, err := req.RequestWith(ctx, x.client)
	if err == nil {
		err = kerr.ErrorForCode(versions.ErrorCode)
	}
	if err != nil {
		e.Fail("reachable", "check --brokers, the network, TLS and SASL", "%v", err)
		return false
	}
	meta, err := x.admin.BrokerMetadata(ctx)
	if err != nil {
		e.Fail("reachable", "check --brokers, the network, TLS and SASL", "%v", err)
		return false
	}
	e.OK("reachable", "cluster %s", meta.Cluster)
	e.Check("brokers", len(meta.Brokers) >= leastReplicas, doctor.Warn, "run three brokers or more: one that fails must not take records along", "%s", count(len(meta.Brokers), "broker"))
	e.OK("version", "%s", kversion.FromApiVersionsResponse(versions).VersionGuess())
	level := int16(0)
	for _, f := range versions.FinalizedFeatures {
		if f.Name == "transaction.version" {
			level = f.MaxVersionLevel
		}
	}
	e.Check("transaction.version", level >= 2, doctor.Fail,
		"kafka-features.sh upgrade --feature transaction.version=2 (Kafka 4.0 or newer); or --publish idempotent", "%d", level)
	if len(meta.Brokers) > 0 {
		x.settings(ctx, e, meta.Brokers[0].NodeID)
	}
	x.rights(ctx, e)
	return true
}

// settings examines the settings of one broker for all.
func (x *examiner) settings(ctx context.Context, e *doctor.Examination, broker int32) {
	found, err := x.admin.DescribeBrokerConfigs(ctx, broker)
	if err == nil && len(found) > 0 {
		err = found[0].Err
	}
	if err != nil || len(found) == 0 {
		e.Warn("settings", "grant DESCRIBE_CONFIGS on the cluster to look at them", "not told: %v", err)
		return
	}
	values := map[string]string{}
	for _, c := range found[0].Configs {
		values[c.Key] = c.MaybeValue()
	}
	if minutes, err := strconv.Atoi(values["offsets.retention.minutes"]); err == nil {
		kept := time.Duration(minutes) * time.Minute
		e.Check("offsets.retention", kept >= leastOffsetsRetention, doctor.Warn,
			"raise offsets.retention.minutes: a group that stands still for so long shows no lag; the frontiers are in Postgres and stay", "%s", kept)
	}
	if ms, err := strconv.Atoi(values["transaction.max.timeout.ms"]); err == nil {
		most := time.Duration(ms) * time.Millisecond
		e.Check("transaction.max.timeout", most >= transactionTimeout, doctor.Fail, "raise transaction.max.timeout.ms", "%s, ours is %s", most, transactionTimeout)
	}
}

// young is the remedy where a coordinator is not there yet.
const young = "ask again: the brokers make a coordinator's topic at its first use, and load it when they start"

// rights asks what our principal may do with group and transactional ids; topics say it themselves.
func (x *examiner) rights(ctx context.Context, e *doctor.Examination) {
	groups := kmsg.NewPtrDescribeGroupsRequest()
	groups.Groups, groups.IncludeAuthorizedOperations = []string{x.group}, true
	resp, err := groups.RequestWith(ctx, x.client)
	if err == nil && len(resp.Groups) == 1 && is(kerr.ErrorForCode(resp.Groups[0].ErrorCode), kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress) {
		err = kerr.ErrorForCode(resp.Groups[0].ErrorCode)
	}
	switch {
	case is(err, kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress):
		e.Warn("ACL group", young, "not told: %v", err)
	case err != nil:
		e.Warn("ACL group", "grant READ on the group", "not told: %v", err)
	case len(resp.Groups) == 1:
		g := resp.Groups[0]
		err := kerr.ErrorForCode(g.ErrorCode)
		if errors.Is(err, kerr.GroupIDNotFound) { // brokers say that of a group that has no members yet
			err = nil
		}
		e.Check("ACL group", err == nil && allowed(g.AuthorizedOperations, aclRead), doctor.Fail,
			fmt.Sprintf("grant READ on group %s", x.group), "group %s: %s", x.group, operations(g.AuthorizedOperations, err))
	}
	id := x.group + ".doctor"
	txn := kmsg.NewPtrDescribeTransactionsRequest()
	txn.TransactionalIDs = []string{id}
	told, err := txn.RequestWith(ctx, x.client)
	if err == nil && len(told.TransactionStates) == 1 {
		err = kerr.ErrorForCode(told.TransactionStates[0].ErrorCode)
	}
	switch {
	case err == nil, errors.Is(err, kerr.TransactionalIDNotFound):
		e.OK("ACL transactional ids", "%s.* may be used", x.group)
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		e.Fail("ACL transactional ids", fmt.Sprintf("grant WRITE on transactional ids with prefix %s.", x.group), "%v", err)
	case is(err, kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress):
		e.Warn("ACL transactional ids", young, "not told: %v", err)
	default:
		e.Warn("ACL transactional ids", fmt.Sprintf("grant WRITE on transactional ids with prefix %s.", x.group), "not told: %v", err)
	}
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// allowed reports whether authorized_operations has all of the operations; brokers that do not tell are believed.
func allowed(bits int32, ops ...int) bool {
	if bits == math.MinInt32 || bits == 0 {
		return true
	}
	for _, op := range ops {
		if bits&(1<<op) == 0 {
			return false
		}
	}
	return true
}

func operations(bits int32, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case bits == math.MinInt32 || bits == 0:
		return "the brokers do not tell rights"
	}
	return fmt.Sprintf("rights %v", kadm.DecodeACLOperations(bits))
}
