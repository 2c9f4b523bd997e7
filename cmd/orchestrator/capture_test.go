package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// B4: labelled sessions are judged and counted; a line that is none is refused by its number, and the others are judged.
func TestCaptureLoops(t *testing.T) {
	same := `{"tool":"search","args":{"q":"refunds"},"result":"no results"}`
	in := `{"id":"a","kind":"same","loop":true,"onset":0,"period":1,"events":[` + same + "," + same + "," + same + "," + same + `]}
{"id":"b","kind":"work","events":[` + same + `,{"text":"I ask the customer."}]}
{"id":"c"}
`
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"capture", "loops", "--json", "-"}, strings.NewReader(in), &out, &errs); code != exitRefused {
		t.Errorf("exit code %d, want %d: %s", code, exitRefused, errs.String())
	}
	var got loopsReport
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if s := got.Score; s.Loops != 1 || s.Honest != 1 || s.Caught != 1 || s.Precision != 1 || s.Recall != 1 || s.MaxPeriods != 3 {
		t.Errorf("%+v", s)
	}
	if len(got.Refused) != 1 || !strings.Contains(got.Refused[0], "line 3") {
		t.Errorf("refused: %q", got.Refused)
	}
	out.Reset()
	execute(t.Context(), []string{"capture", "loops", "-"}, strings.NewReader(in), &out, &errs)
	if !strings.Contains(out.String(), "precision 1.000, recall 1.000") {
		t.Errorf("%s", out.String())
	}
	if code := execute(t.Context(), []string{"capture", "loops", "nowhere.jsonl"}, nil, &out, &errs); code != exitFailed || !strings.Contains(errs.String(), "nowhere.jsonl") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}
