//go:build !nodev

package devstack

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Broker is a Kafka broker in this process, on loopback, that keeps nothing.
type Broker struct{ cluster *kfake.Cluster }

// StartBroker starts the broker and makes its topics. Its transactions
// complete at once: what depends on marker delays or coordinator crashes needs
// StartKafka.
func StartBroker(c BrokerConfig) (*Broker, error) {
	opts := []kfake.Opt{
		kfake.NumBrokers(max(c.Brokers, 1)),
		kfake.ClusterID("milepost-dev"),
		kfake.GroupMinSessionTimeout(100 * time.Millisecond),
	}
	for _, t := range c.Topics {
		opts = append(opts, kfake.SeedTopics(t.Partitions, t.Name))
	}
	if len(c.Settings) > 0 {
		opts = append(opts, kfake.BrokerConfigs(c.Settings))
	}
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		return nil, fmt.Errorf("start the broker in process: %w", err)
	}

	return &Broker{cluster: cluster}, nil
}

// Addrs are the broker's bootstrap addresses, host:port.
func (b *Broker) Addrs() []string { return b.cluster.ListenAddrs() }

// Stop closes the broker and every connection to it.
func (b *Broker) Stop() { b.cluster.Close() }
