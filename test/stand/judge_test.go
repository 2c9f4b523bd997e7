package stand

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The stranger's verdict is worth something: each fault that a history of one key can have is found.
func TestVerdictSeesFaults(t *testing.T) {
	for _, c := range []struct {
		name, want string
		outputs    []*kgo.Record
	}{
		{"in order", "", outputs("1 0 3", "2 4 3", "3 5 4")},
		{"one lost", "output 2 of key k", outputs("1 0 1", "3 5 1")},
		{"one counted wrongly", "want n 2", outputs("1 0 1", "3 4 1")},
		{"out of order", "output 2 of key k", outputs("1 0 1", "2 5 1", "3 4 1")},
		{"an older owner after a newer one", "the one before of 2", outputs("1 0 2", "2 4 1")},
		{"one too many", "an output of no record", outputs("1 0 1", "2 4 1", "3 5 1", "3 5 1")},
	} {
		h := &history{places: []place{{0, 0}, {0, 4}, {0, 5}}}
		var v Verdict
		for _, r := range c.outputs {
			v.judge(h, r, 0)
		}
		if got := strings.Join(v.Faults, "; "); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// outputs makes outputs of key k from words: n, offset, epoch.
func outputs(words ...string) []*kgo.Record {
	var records []*kgo.Record
	for _, w := range words {
		var n, offset, epoch int
		_, _ = fmt.Sscan(w, &n, &offset, &epoch)
		records = append(records, &kgo.Record{
			Key: []byte("k"), Value: fmt.Appendf(nil, `{"key":"k","n":%d,"segment":1,"topic":"raw","generation":1,"partition":0,"offset":%d}`, n, offset),
			Headers: []kgo.RecordHeader{
				{Key: "ce_id", Value: fmt.Appendf(nil, "raw/1/0/%d/0", offset)}, {Key: "ce_epoch", Value: fmt.Append(nil, epoch)},
			},
		})
	}
	return records
}
