package stream

import (
	"strconv"
	"time"
)

// CloudEvents 1.0 header names, Kafka binding, binary mode. A stranger can check exactly-once and
// order from these headers alone.
const (
	HeaderSpecVersion = "ce_specversion"
	HeaderType        = "ce_type"
	HeaderSource      = "ce_source"
	HeaderSubject     = "ce_subject"
	HeaderTime        = "ce_time"
	HeaderID          = "ce_id"
	HeaderRevision    = "ce_revision" // <topic generation>.<offset>
	HeaderEpoch       = "ce_epoch"    // the ownership epoch under which the output was prepared
	HeaderReason      = "ce_reason"   // dead letters only
	HeaderContentType = "content-type"
)

// CloudEvent is what an output's headers say about it.
type CloudEvent struct {
	Type        string
	Group       string
	Identity    Identity
	Index       int
	Subject     Key
	Time        time.Time // event time; zero: left out
	Epoch       Epoch
	Reason      string // dead letters only
	ContentType string
}

// Headers gives the event's record headers in a fixed order, so that equal events are equal bytes.
func (e CloudEvent) Headers() []Header {
	h := []Header{
		{HeaderSpecVersion, []byte("1.0")},
		{HeaderType, []byte(e.Type)},
		{HeaderSource, []byte("/" + e.Group + "/" + e.Identity.Partition.Topic)},
		{HeaderSubject, []byte(e.Subject)},
	}
	if !e.Time.IsZero() {
		h = append(h, Header{HeaderTime, []byte(e.Time.UTC().Format(time.RFC3339Nano))})
	}
	h = append(h,
		Header{HeaderID, []byte(e.Identity.OutputID(e.Index))},
		Header{HeaderRevision, []byte(e.Identity.Revision.String())},
		Header{HeaderEpoch, []byte(strconv.FormatInt(int64(e.Epoch), 10))},
	)
	if e.Reason != "" {
		h = append(h, Header{HeaderReason, []byte(e.Reason)})
	}
	if e.ContentType != "" {
		h = append(h, Header{HeaderContentType, []byte(e.ContentType)})
	}
	return h
}
