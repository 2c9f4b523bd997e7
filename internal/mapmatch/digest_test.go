package mapmatch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"strings"
	"sync"
	"testing"
)

// digestFile holds the digest of what the matcher says about two hundred drives: every state and every result, byte for byte. It changes
// with the model and with nothing else; MILEPOST_UPDATE=1 writes it anew.
const digestFile = "testdata/digest.txt"

func digest(tb testing.TB, m *Matcher, drives [][]Observation) string {
	tb.Helper()
	h := sha256.New()
	for _, all := range drives {
		var state []byte
		for _, o := range all {
			next, r, err := m.Push(state, o)
			if err != nil {
				tb.Error(err)
				return ""
			}
			state = next
			h.Write(state[9 : len(state)-crcSize]) // without the graph's hash, which changes with roadnet
			write(h, r)
		}
		r, err := m.Flush(state)
		if err != nil {
			tb.Error(err)
			return ""
		}
		write(h, r)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func write(h hash.Hash, r Result) {
	p := r.Provisional
	r.Provisional = nil
	h.Write(fmt.Appendf(nil, "%+v %+v\n", r, p != nil))
	if p != nil {
		h.Write(fmt.Appendf(nil, "%+v\n", *p))
	}
}

// M43: the same bytes from processors that fuse multiplication and addition and from those that do not (.ci runs this test with GOAMD64=v1
// and v3), from one goroutine and from four at once, and from a matcher that was used before.
func TestM43_SameBytesEverywhere(t *testing.T) {
	m := town(t)
	var drives [][]Observation
	for seed := range uint64(200) {
		drives = append(drives, wander(m, seed, 60))
	}
	var got [4]string
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			mt, err := New(m.Graph, DefaultConfig())
			if err != nil {
				t.Error(err)
				return
			}
			if i%2 == 1 {
				digest(t, mt, drives[50:60])
			}
			got[i] = digest(t, mt, drives)
		})
	}
	wg.Wait()
	for i := range got {
		if got[i] != got[0] {
			t.Errorf("goroutine %d: %s, the first one: %s", i, got[i], got[0])
		}
	}
	if os.Getenv("MILEPOST_UPDATE") != "" {
		if err := os.WriteFile(digestFile, []byte(got[0]+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(digestFile)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(want)); got[0] != want {
		t.Errorf("digest %s, want %s: the model has changed, or this processor computes otherwise", got[0], want)
	}
}
