package partition

import (
	"strings"
	"testing"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// P26, F26: a poison record that is larger than what can be published has a dead letter all the same, which says what it leaves out: else the
// key would go to quarantine, and with it what others have written for it.
func TestDeadLetterFits(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		record stream.Record
		detail string
		value  string
		key    string
	}{
		"fits":       {stream.Record{Key: []byte("k"), Value: []byte("?v")}, "why", "?v", "k"},
		"value":      {stream.Record{Key: []byte("k"), Value: []byte(big)}, "why; left out: a value of 1048576 bytes", "", "k"},
		"headers":    {stream.Record{Key: []byte("k"), Value: []byte("?v"), Headers: []stream.Header{{Key: big}}}, "why; left out: a value of 2 bytes, 1 headers", "", "k"},
		"everything": {stream.Record{Key: []byte(big), Value: []byte("?v")}, "why; left out: a value of 2 bytes, 0 headers, a key of 1048576 bytes", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var told *commit.PoisonError
			m := &Machine{cfg: DefaultConfig(), work: teller{toy{}, &told}, tenure: commit.NewTenure(commit.Ownership{Epoch: 1})}
			out := m.letter(&item{record: c.record, poison: &commit.PoisonError{Reason: "r", Detail: "why"}})
			if out.Size() > m.cfg.DeadLetterBytes {
				t.Errorf("the dead letter has %d bytes", out.Size())
			}
			if told.Reason != "r" || told.Detail != c.detail {
				t.Errorf("it says %q, %q, want %q", told.Reason, told.Detail, c.detail)
			}
			if string(out.Value) != c.value || string(out.Key) != c.key {
				t.Errorf("value %.20q, key %.20q; want %.20q, %.20q", out.Value, out.Key, c.value, c.key)
			}
		})
	}
}

// teller is the toy whose dead letters carry the record's headers, as the fleet's do.
type teller struct {
	toy
	told **commit.PoisonError
}

func (w teller) DeadLetter(id stream.Identity, epoch stream.Epoch, r *stream.Record, p *commit.PoisonError) commit.Output {
	*w.told = p
	out := w.toy.DeadLetter(id, epoch, &stream.Record{Value: r.Value}, p)
	out.Key, out.Headers = r.Key, append(out.Headers, r.Headers...)
	return out
}
