package publish

import (
	"context"
	"fmt"
	"maps"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topics names the service's own topics.
type Topics struct{ Prefix string }

// Matched is the fleet workload's output topic.
func (t Topics) Matched() string { return t.Prefix + ".matched" }

// Ledger is the internal topic that says what was published.
func (t Topics) Ledger() string { return t.Prefix + ".ledger" }

// DeadLetter is where poison records go.
func (t Topics) DeadLetter() string { return t.Prefix + ".dead-letter" }

// TopicsSpec is what must be there before the service starts.
type TopicsSpec struct {
	Topics Topics
	Raw    string
	// Outputs are further output topics; matched and dead letters are always among them.
	Outputs []string
	// Create makes what is missing; else missing topics are an error. Existing topics are only ever checked.
	Create bool
	// RawPartitions is how many partitions a missing raw topic is made with; 0: it must exist.
	RawPartitions int32
	// OutputPartitions of new output topics; 0: as many as the raw topic has.
	OutputPartitions int32
	Replication      int16 // 0: the broker's default
	// MaxRecordBytes is what output topics and the ledger must accept; 0: not checked.
	MaxRecordBytes int32
}

// TopicInfo is what a claim needs to know of a topic.
type TopicInfo struct {
	Name       string
	ID         [16]byte
	Partitions int32
}

// TopicsInfo is the outcome of EnsureTopics.
type TopicsInfo struct{ Raw, Ledger TopicInfo }

// TopicError names a topic's setting that is not what the service needs. Without a setting the topic is missing, and Remedy says what to do.
type TopicError struct{ Topic, Setting, Found, Wanted, Remedy string }

func (e *TopicError) Error() string {
	if e.Setting == "" {
		return fmt.Sprintf("there is no topic %s: %s", e.Topic, e.Remedy)
	}
	return fmt.Sprintf("topic %s: %s is %s, must be %s", e.Topic, e.Setting, e.Found, e.Wanted)
}

// ledgerSettings: the ledger is never compacted and nothing expires; the owners delete below the floor.
func ledgerSettings() map[string]string {
	return map[string]string{"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
}

// EnsureTopics creates what is missing (or says that it is), checks what exists, and gives what claims need. The errors
// name topic, setting, what was found and what is wanted.
func EnsureTopics(ctx context.Context, client *kgo.Client, spec TopicsSpec) (TopicsInfo, error) {
	e := ensurer{client: client, admin: kadm.NewClient(client), spec: spec}
	outputs := append([]string{spec.Topics.Matched(), spec.Topics.DeadLetter()}, spec.Outputs...)
	// One question for all: an assignment callback asks this too.
	if err := e.look(ctx, append([]string{spec.Raw, spec.Topics.Ledger()}, outputs...)...); err != nil {
		return TopicsInfo{}, err
	}
	raw, err := e.ensure(ctx, spec.Raw, spec.RawPartitions, nil)
	if err != nil {
		return TopicsInfo{}, err
	}
	ledger, err := e.ensure(ctx, spec.Topics.Ledger(), raw.Partitions, ledgerSettings())
	if err != nil {
		return TopicsInfo{}, err
	}
	if ledger.Partitions != raw.Partitions {
		return TopicsInfo{}, &TopicError{
			Topic: ledger.Name, Setting: "partition count", Found: strconv.Itoa(int(ledger.Partitions)),
			Wanted: fmt.Sprintf("%d, as the raw topic %s has", raw.Partitions, raw.Name),
		}
	}
	n := spec.OutputPartitions
	if n == 0 {
		n = raw.Partitions
	}
	for _, topic := range outputs {
		if _, err := e.ensure(ctx, topic, n, nil); err != nil {
			return TopicsInfo{}, err
		}
	}
	if err := e.settings(ctx, ledger.Name, ledgerSettings()); err != nil {
		return TopicsInfo{}, err
	}
	for _, topic := range append(outputs, ledger.Name) {
		if err := e.accepts(ctx, topic); err != nil {
			return TopicsInfo{}, err
		}
	}
	return TopicsInfo{Raw: raw, Ledger: ledger}, nil
}

// remedy says what to do about a topic that is missing.
func (s *TopicsSpec) remedy(topic string) string {
	if topic == s.Raw {
		return "create it, or run with --topics create --raw-partitions N to have it made with N partitions"
	}
	return "create it, or run with --topics create"
}

type ensurer struct {
	client *kgo.Client
	admin  *kadm.Client
	spec   TopicsSpec
	found  map[string]described
}

// look asks the brokers about the topics.
func (e *ensurer) look(ctx context.Context, topics ...string) error {
	found, err := describeTopics(ctx, e.client, topics...)
	if err != nil {
		return fmt.Errorf("describe topics: %w", err)
	}
	if e.found == nil {
		e.found = map[string]described{}
	}
	maps.Copy(e.found, found)
	return nil
}

// ensure gives the topic, made with the settings where it is missing and may be made.
func (e *ensurer) ensure(ctx context.Context, topic string, partitions int32, settings map[string]string) (TopicInfo, error) {
	info, there, err := e.find(topic)
	if err != nil || there {
		return info, err
	}
	if !e.spec.Create || partitions <= 0 {
		return info, &TopicError{Topic: topic, Remedy: e.spec.remedy(topic)}
	}
	configs := map[string]*string{}
	for k, v := range settings {
		configs[k] = new(v)
	}
	replication := e.spec.Replication
	if replication == 0 {
		replication = -1
	}
	resp, err := e.admin.CreateTopic(ctx, partitions, replication, configs, topic)
	if err == nil {
		err = resp.Err
	}
	// Two processes that start together both create.
	if err != nil && !is(err, kerr.TopicAlreadyExists) {
		return info, fmt.Errorf("create topic %s: %w", topic, err)
	}
	for {
		if err := e.look(ctx, topic); err != nil {
			return info, err
		}
		info, there, err := e.find(topic)
		if err != nil || there {
			return info, err
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return info, fmt.Errorf("create topic %s: %w", topic, context.Cause(ctx))
		}
	}
}

func (e *ensurer) find(topic string) (TopicInfo, bool, error) {
	info := TopicInfo{Name: topic}
	d, ok := e.found[topic]
	switch {
	case !ok || is(d.err, kerr.UnknownTopicOrPartition):
		return info, false, nil
	case d.err != nil:
		return info, false, fmt.Errorf("describe topic %s: %w", topic, d.err)
	}
	info.ID, info.Partitions = d.id, d.partitions
	return info, info.Partitions > 0, nil
}

// described is what the brokers say of a topic now.
type described struct {
	id         [16]byte
	partitions int32
	err        error
}

// describeTopics asks a broker; kadm would answer from a cache that is seconds old.
func describeTopics(ctx context.Context, client *kgo.Client, topics ...string) (map[string]described, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = false
	for _, topic := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = new(topic)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	found := map[string]described{}
	for _, t := range resp.Topics {
		if t.Topic != nil {
			found[*t.Topic] = described{id: t.TopicID, partitions: int32(len(t.Partitions)), err: kerr.ErrorForCode(t.ErrorCode)}
		}
	}
	return found, nil
}

// settings compares the topic's settings with what is wanted.
func (e *ensurer) settings(ctx context.Context, topic string, wanted map[string]string) error {
	found, err := e.describe(ctx, topic)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(wanted))
	for k := range wanted {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		if got := found[k]; got != wanted[k] {
			return &TopicError{Topic: topic, Setting: k, Found: strconv.Quote(got), Wanted: strconv.Quote(wanted[k])}
		}
	}
	return nil
}

// accepts checks that the topic takes records as large as we would send.
func (e *ensurer) accepts(ctx context.Context, topic string) error {
	if e.spec.MaxRecordBytes == 0 {
		return nil
	}
	found, err := e.describe(ctx, topic)
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(found["max.message.bytes"], 10, 64)
	if err == nil && n < int64(e.spec.MaxRecordBytes) {
		return &TopicError{
			Topic: topic, Setting: "max.message.bytes", Found: strconv.FormatInt(n, 10),
			Wanted: fmt.Sprintf("at least %d", e.spec.MaxRecordBytes),
		}
	}
	return nil
}

func (e *ensurer) describe(ctx context.Context, topic string) (map[string]string, error) {
	resources, err := e.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("describe settings of topic %s: %w", topic, err)
	}
	r, err := resources.On(topic, nil)
	if err == nil {
		err = r.Err
	}
	if err != nil {
		return nil, fmt.Errorf("describe settings of topic %s: %w", topic, err)
	}
	found := map[string]string{}
	for _, c := range r.Configs {
		found[c.Key] = c.MaybeValue()
	}
	return found, nil
}

// topicCache remembers which topics exist; that one does not is asked anew each time.
type topicCache struct {
	client *kgo.Client

	mu  sync.Mutex
	ids map[string][16]byte
}

// absent gives an error for each of the topics that is not there.
func (c *topicCache) absent(ctx context.Context, topics []string) (map[string]error, error) {
	var ask []string
	c.mu.Lock()
	for _, t := range topics {
		if _, ok := c.ids[t]; !ok {
			ask = append(ask, t)
		}
	}
	c.mu.Unlock()
	if len(ask) == 0 {
		return nil, nil
	}
	found, err := describeTopics(ctx, c.client, ask...)
	if err != nil {
		return nil, fmt.Errorf("describe topics: %w", err)
	}
	absent := map[string]error{}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil {
		c.ids = map[string][16]byte{}
	}
	for _, t := range ask {
		d, ok := found[t]
		switch {
		case !ok:
			absent[t] = kerr.UnknownTopicOrPartition
		case kindOf(d.err) == missing || kindOf(d.err) == fatal:
			absent[t] = d.err
		case d.err != nil:
			return nil, fmt.Errorf("describe topic %s: %w", t, d.err)
		default:
			c.ids[t] = d.id
		}
	}
	return absent, nil
}

// id gives the topic's id.
func (c *topicCache) id(ctx context.Context, topic string) ([16]byte, error) {
	absent, err := c.absent(ctx, []string{topic})
	if err == nil {
		err = absent[topic]
	}
	if err != nil {
		return [16]byte{}, fmt.Errorf("id of topic %s: %w", topic, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[topic], nil
}

// doubt forgets topics after a publish that may have failed for want of one.
func (c *topicCache) doubt(topics []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range topics {
		delete(c.ids, t)
	}
}
