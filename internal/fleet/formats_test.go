package fleet_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/fleet"
)

// schemaNode is the part of JSON Schema that the published schemas use for shape.
type schemaNode struct {
	Properties map[string]json.RawMessage `json:"properties"`
	Enum       []string                   `json:"enum"`
	Defs       map[string]schemaNode      `json:"$defs"`
}

// Design 10, A11, F23: the published schema has the fields of the event's types, and the closed lists of the code; the page names every reason.
func TestPublishedFormats(t *testing.T) {
	b, err := os.ReadFile("../../docs/formats/matched.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s schemaNode
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	var reset, retracted schemaNode
	for name, n := range map[string]*schemaNode{"reset": &reset, "retracted": &retracted} {
		if err := json.Unmarshal(s.Properties[name], n); err != nil {
			t.Fatal(err)
		}
	}
	var reasons schemaNode
	if err := json.Unmarshal(reset.Properties["reason"], &reasons); err != nil {
		t.Fatal(err)
	}
	same(t, "dispositions", fleet.Dispositions(), s.Defs["disposition"].Enum)
	same(t, "reset reasons", fleet.ResetReasons(), reasons.Enum)
	for name, c := range map[string]struct {
		v any
		n schemaNode
	}{
		"event": {fleet.Event{}, s}, "reset": {fleet.SegmentReset{}, reset}, "retracted": {fleet.Retraction{}, retracted},
		"final": {fleet.Final{}, s.Defs["final"]}, "position": {fleet.Position{}, s.Defs["position"]}, "span": {fleet.Span{}, s.Defs["span"]},
	} {
		var published []string
		for field := range c.n.Properties {
			published = append(published, field)
		}
		same(t, name, tags(reflect.TypeOf(c.v)), published)
	}
	page, err := os.ReadFile("../../docs/formats/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range slices.Concat(fleet.PoisonReasons(), fleet.ResetReasons(), fleet.Dispositions()) {
		if !strings.Contains(string(page), "| `"+word+"` |") {
			t.Errorf("docs/formats/fleet.md does not list %s", word)
		}
	}
}

func same(t *testing.T, what string, want, got []string) {
	t.Helper()
	want, got = slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s, code and schema: %s", what, d)
	}
}

// tags are a struct's JSON names, those of embedded structs included.
func tags(t reflect.Type) []string {
	var out []string
	for f := range t.Fields() {
		if f.Anonymous {
			out = append(out, tags(f.Type.Elem())...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}
