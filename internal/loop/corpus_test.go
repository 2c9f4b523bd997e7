package loop

import (
	"os"
	"path/filepath"
	"testing"
)

// B4: precision and recall on the labelled corpus do not fall. Rules and limits were chosen on tuning.jsonl; test.jsonl, written with other
// tools, words and shapes, was only measured, and the goal of 0.95 each is not met there yet.
func TestCorpus(t *testing.T) {
	for name, floor := range map[string]Score{
		"tuning.jsonl": {Precision: 0.97, Recall: 0.94},
		"test.jsonl":   {Precision: 0.90, Recall: 0.75},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := os.Open(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close() //nolint:errcheck // read only
			var got Score
			kinds := map[string]int{}
			for s, err := range ReadSessions(f) {
				if err != nil {
					t.Fatal(err)
				}
				j := Judge(&s)
				got.Add(&j)
				kinds[s.Kind]++
			}
			t.Logf("%+v", got)
			if got.Precision < floor.Precision || got.Recall < floor.Recall {
				t.Errorf("precision %.3f and recall %.3f, not below %.2f and %.2f", got.Precision, got.Recall, floor.Precision, floor.Recall)
			}
			if got.Loops < 48 || got.Honest < 50 || len(kinds) < 16 {
				t.Errorf("the corpus has %d loops and %d honest sessions of %d kinds", got.Loops, got.Honest, len(kinds))
			}
		})
	}
}
