package fleet

import (
	"strconv"
	"strings"
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// Headers of dead letters, beside the CloudEvents ones: where the record came from and why it is here.
const (
	HeaderDeadDetail    = "milepost_detail" // for people; never the payload
	HeaderDeadTopic     = "milepost_topic"
	HeaderDeadPartition = "milepost_partition"
	HeaderDeadOffset    = "milepost_offset"
	HeaderDeadTime      = "milepost_time" // the record's Kafka timestamp, RFC 3339
)

// Longest subject that a dead letter's header repeats of a key that may be anything.
const maxSubject = 256

// DeadLetter tells of a poison record: its own key, value and headers, byte for byte, and the reason. Of the record's headers those that
// say what this record is are replaced.
func (w *Workload) DeadLetter(id stream.Identity, epoch stream.Epoch, r *stream.Record, p *commit.PoisonError) commit.Output {
	event := stream.CloudEvent{
		Type: DeadLetterType, Group: w.cfg.Group, Identity: id, Subject: subject(r.Key), Epoch: epoch, Reason: p.Reason,
	}
	if y := r.Timestamp.UTC().Year(); y >= 1 && y <= maxYear {
		event.Time = r.Timestamp.Truncate(time.Millisecond)
	}
	headers := event.Headers()
	headers = append(headers,
		stream.Header{Key: HeaderDeadDetail, Value: []byte(p.Detail)},
		stream.Header{Key: HeaderDeadTopic, Value: []byte(id.Partition.Topic)},
		stream.Header{Key: HeaderDeadPartition, Value: strconv.AppendInt(nil, int64(id.Partition.Number), 10)},
		stream.Header{Key: HeaderDeadOffset, Value: strconv.AppendInt(nil, id.Revision.Offset, 10)},
		stream.Header{Key: HeaderDeadTime, Value: r.Timestamp.UTC().AppendFormat(nil, time.RFC3339Nano)},
	)
	for _, h := range r.Headers {
		if !strings.HasPrefix(h.Key, "ce_") && !strings.HasPrefix(h.Key, "milepost_") {
			headers = append(headers, h)
		}
	}
	return commit.Output{Topic: w.cfg.DeadLetterTopic, Key: r.Key, Value: r.Value, Headers: headers}
}

func subject(key []byte) stream.Key {
	s := strings.ToValidUTF8(string(key[:min(len(key), maxSubject)]), "\uFFFD")
	return stream.Key(strings.ReplaceAll(s, "\x00", "\uFFFD"))
}
