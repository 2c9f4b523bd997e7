package publish

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// F24: topics are made once, checked ever after, and their ids and partition counts are what the claims carry (P31, H12).
func TestEnsureTopics(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		again, err := EnsureTopics(r.ctx(), r.admin, TopicsSpec{Topics: r.topics, Raw: r.raw, MaxRecordBytes: 1_000_012})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(r.info, again); d != "" {
			t.Errorf("checked differs from created:\n%s", d)
		}
		if again.Raw.ID == [16]byte{} || again.Ledger.Partitions != rigPartitions {
			t.Errorf("got %+v", again)
		}
	})
}

// Each wrong topic is named with the setting, what was found and what is wanted.
func TestEnsureTopicsErrors(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		admin := kadm.NewClient(r.admin)
		set := func(topic, name, value string) {
			t.Helper()
			if _, err := admin.AlterTopicConfigs(r.ctx(), []kadm.AlterConfig{{Name: name, Value: &value}}, topic); err != nil {
				t.Fatal(err)
			}
		}
		want := func(spec TopicsSpec, parts ...string) {
			t.Helper()
			var err error
			var te *TopicError
			// A changed setting takes a moment to reach the broker that is asked.
			eventually(t, func() bool {
				_, err = EnsureTopics(r.ctx(), r.admin, spec)
				return errors.As(err, &te) && strings.Contains(err.Error(), parts[1])
			})
			if !errors.As(err, &te) {
				t.Fatalf("got %v, want a topic error", err)
			}
			for _, p := range parts {
				if !strings.Contains(err.Error(), p) {
					t.Errorf("%q does not say %q", err, p)
				}
			}
		}
		spec := TopicsSpec{Topics: r.topics, Raw: r.raw, Create: true, MaxRecordBytes: 1_000_012}
		set(r.topics.DeadLetter(), "max.message.bytes", "5000")
		want(spec, r.topics.DeadLetter(), "max.message.bytes", "5000", "1000012")
		set(r.topics.Ledger(), "retention.ms", "1000")
		want(spec, r.topics.Ledger(), "retention.ms", `"1000"`, `"-1"`)
		set(r.topics.Ledger(), "cleanup.policy", "compact")
		want(spec, r.topics.Ledger(), "cleanup.policy", `"compact"`, `"delete"`)

		if _, err := admin.CreatePartitions(r.ctx(), 1, r.raw); err != nil {
			t.Fatal(err)
		}
		want(spec, r.topics.Ledger(), "partition count", "is 4", "must be 5")
		want(TopicsSpec{Topics: r.topics, Raw: r.raw + "x", Create: true}, r.raw+"x", "there is no topic", "--topics create --raw-partitions N")
		want(TopicsSpec{Topics: Topics{Prefix: r.raw + "y"}, Raw: r.raw}, r.raw+"y.ledger", "there is no topic", "run with --topics create")
	})
}

// P24: a broker without transaction.version 2 is refused at start, with what to do, unless that was asked for.
func TestCheck(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		if err := r.publisher("a").Check(r.ctx()); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("old", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, fakeBroker(t), nil)
		req := kmsg.NewPtrUpdateFeaturesRequest()
		f := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		f.Feature, f.MaxVersionLevel, f.UpgradeType, f.AllowDowngrade = "transaction.version", 1, 2, true
		req.FeatureUpdates = append(req.FeatureUpdates, f)
		if _, err := req.RequestWith(r.ctx(), r.admin); err != nil {
			t.Fatal(err)
		}
		err := r.publisher("a").Check(r.ctx())
		if err == nil || !strings.Contains(err.Error(), "transaction.version is 1") {
			t.Errorf("got %v", err)
		}
		r.tune = func(c *Config) { c.SkipTransactionV2 = true }
		if err := r.publisher("b").Check(r.ctx()); err != nil {
			t.Errorf("skipped: %v", err)
		}
	})
	t.Run("timeout", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, fakeBroker(t, kfake.BrokerConfigs(map[string]string{"transaction.max.timeout.ms": "5000"})), nil)
		if err := r.publisher("a").Check(r.ctx()); err == nil || !strings.Contains(err.Error(), "transaction.max.timeout.ms") {
			t.Errorf("got %v", err)
		}
	})
}

// Wrong configurations are refused.
func TestConfig(t *testing.T) {
	t.Parallel()
	good := Config{Group: "g", Raw: "r", Instance: "i", Topics: Topics{Prefix: "p"}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"group": func(c *Config) { c.Group = "" }, "lanes": func(c *Config) { c.Lanes = -1 },
		"transaction timeout": func(c *Config) { c.TransactionTimeout = 11e9 }, "max record bytes": func(c *Config) { c.MaxRecordBytes = -1 },
	} {
		c := good
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
