//go:build nodev

package devstack

import "fmt"

// Broker is left out of this build.
type Broker struct{}

// StartBroker answers ErrLeftOut.
func StartBroker(BrokerConfig) (*Broker, error) {
	return nil, fmt.Errorf("start the broker in process: %w", ErrLeftOut)
}

// Addrs are none.
func (b *Broker) Addrs() []string { return nil }

// Stop does nothing.
func (b *Broker) Stop() {}
