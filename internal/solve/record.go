package solve

import (
	"github.com/twmb/franz-go/pkg/kgo"
)

// record makes a record, signed where there is a secret.
func (s Secret) record(topic string, p int32, key, value []byte) *kgo.Record {
	r := &kgo.Record{Topic: topic, Partition: p, Key: key, Value: value}
	if len(s) > 0 {
		r.Headers = []kgo.RecordHeader{{Key: macHeader, Value: s.sign(topic, value)}}
	}
	return r
}

// verify is errForged for a record that the secret does not vouch for.
func (s Secret) verify(r *kgo.Record) error {
	var mac []byte
	for _, h := range r.Headers {
		if h.Key == macHeader {
			mac = h.Value
		}
	}
	return s.check(r.Topic, r.Value, mac)
}

// producing are the options of a producer whose records carry no promise: one acknowledgement, no idempotence, and what is late is
// worth nothing any more.
func producing(opts []kgo.Opt) []kgo.Opt {
	return append(opts,
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(4),
		kgo.ProducerLinger(0), kgo.RecordDeliveryTimeout(deliveryTimeout), kgo.RecordRetries(3),
		kgo.ProducerBatchCompression(kgo.Lz4Compression(), kgo.NoCompression()),
		kgo.MaxBufferedRecords(maxBuffered), kgo.MaxBufferedBytes(maxBufferedBytes),
	)
}
