package devstack

// Topic is a topic that a broker starts with.
type Topic struct {
	Name       string
	Partitions int32
}

// BrokerConfig configures the broker in process. The zero value is one node
// without topics.
type BrokerConfig struct {
	Brokers  int               // nodes; 0 is 1
	Topics   []Topic           // made at start
	Settings map[string]string // broker settings under Kafka's names
}
