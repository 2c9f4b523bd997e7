package audit

import (
	"fmt"
	"testing"
)

// FuzzParse: identities of any header's bytes are refused, or are those that the header's text says.
func FuzzParse(f *testing.F) {
	f.Add("raw/1/0/41/0", "1.41", "raw")
	f.Add("raw/1/0/-41/0", "1.-41", "raw")
	f.Add("raw/99999999999/0/1/0", "99999999999.1", "raw")
	f.Add("raw/1/4294967296/1/0", "1.1", "raw")
	f.Add("a/b/1/2/3/4", "1.3", "a/b")
	f.Add("raw/1/0/9223372036854775808/0", "", "raw")
	f.Fuzz(func(t *testing.T, id, revision, raw string) {
		at, index, rev, err := parse(id, revision, raw)
		if err != nil {
			return
		}
		if got := fmt.Sprintf("%s/%d/%d/%d/%d", raw, rev.Generation, at.partition, at.offset, index); got != id {
			t.Errorf("%q is read as %q", id, got)
		}
		if rev.String() != revision || rev.Offset != at.offset {
			t.Errorf("%q has revision %s, its header says %q", id, rev, revision)
		}
	})
}
