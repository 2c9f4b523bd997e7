package fleet_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"milepost/internal/commit"
	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
	"milepost/internal/stream"
)

func config() fleet.Config {
	c := fleet.DefaultConfig()
	c.Group, c.MatchedTopic, c.DeadLetterTopic = "g", "p.matched", "p.dead-letter"
	return c
}

func workload(tb testing.TB, c fleet.Config, m fleet.Map) *fleet.Workload {
	tb.Helper()
	w, err := fleet.New(c, fleet.OneMap(m))
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// A3, M22, M24, M25, F10: every poison reason, by a record that has it and is otherwise good.
func TestDecodePoison(t *testing.T) {
	stamp := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const good = `"time":"2026-01-02T03:04:05Z","lon":7.1,"lat":50.2`
	for _, c := range []struct {
		name, key, value, contentType, want string
	}{
		{"no value", "v", "", "", fleet.PoisonNoValue},
		{"no key", "", "{" + good + "}", "", fleet.PoisonNoKey},
		{"key not text", "\xff", "{" + good + "}", "", fleet.PoisonBadKey},
		{"key with NUL", "a\x00b", "{" + good + "}", "", fleet.PoisonBadKey},
		{"key too long", strings.Repeat("k", 513), "{" + good + "}", "", fleet.PoisonBadKey},
		{"other vehicle", "v", `{"vehicle":"w",` + good + "}", "", fleet.PoisonKeyMismatch},
		{"empty vehicle", "v", `{"vehicle":"",` + good + "}", "", fleet.PoisonKeyMismatch},
		{"protobuf", "v", "{" + good + "}", "application/x-protobuf", fleet.PoisonWrongSchema},
		{"no content type at all", "v", "{" + good + "}", ";;", fleet.PoisonWrongSchema},
		{"too large", "v", `{"x":"` + strings.Repeat("x", 64<<10) + `",` + good + "}", "", fleet.PoisonTooLarge},
		{"empty value", "v", "-", "", fleet.PoisonUndecodable},
		{"not an object", "v", "[1]", "", fleet.PoisonUndecodable},
		{"truncated", "v", `{"lon":7.1,"la`, "", fleet.PoisonUndecodable},
		{"two objects", "v", "{" + good + "}{}", "", fleet.PoisonUndecodable},
		{"given twice", "v", `{"lon":7.1,` + good + "}", "", fleet.PoisonUndecodable},
		{"nested too deep", "v", `{"x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "," + good + "}", "", fleet.PoisonUndecodable},
		{"bad escape", "v", `{"vehicle":"\q",` + good + "}", "", fleet.PoisonUndecodable},
		{"lon is text", "v", `{"time":"2026-01-02T03:04:05Z","lon":"7.1","lat":50.2}`, "", fleet.PoisonUndecodable},
		{"speed is text", "v", `{"speed_mps":"fast",` + good + "}", "", fleet.PoisonUndecodable},
		{"provider is long", "v", `{"provider":"` + strings.Repeat("p", 65) + `",` + good + "}", "", fleet.PoisonUndecodable},
		{"no lon", "v", `{"time":"2026-01-02T03:04:05Z","lat":50.2}`, "", fleet.PoisonNoCoordinates},
		{"null lat", "v", `{"time":"2026-01-02T03:04:05Z","lon":7.1,"lat":null}`, "", fleet.PoisonNoCoordinates},
		{"NaN", "v", `{"time":"2026-01-02T03:04:05Z","lon":7.1,"lat":NaN}`, "", fleet.PoisonNonFinite},
		{"infinite", "v", `{"time":"2026-01-02T03:04:05Z","lon":-Infinity,"lat":50.2}`, "", fleet.PoisonNonFinite},
		{"beyond a float", "v", `{"time":"2026-01-02T03:04:05Z","lon":1e999,"lat":50.2}`, "", fleet.PoisonNonFinite},
		{"lat 91", "v", `{"time":"2026-01-02T03:04:05Z","lon":7.1,"lat":91}`, "", fleet.PoisonOutOfRange},
		{"swapped", "v", `{"time":"2026-01-02T03:04:05Z","lon":39.7,"lat":-100.6}`, "", fleet.PoisonOutOfRange},
		{"lon 180.1", "v", `{"time":"2026-01-02T03:04:05Z","lon":180.1,"lat":1}`, "", fleet.PoisonOutOfRange},
		{"null island", "v", `{"time":"2026-01-02T03:04:05Z","lon":0,"lat":-0.0}`, "", fleet.PoisonZero},
		{"no time", "v", `{"lon":7.1,"lat":50.2}`, "", fleet.PoisonNoTime},
		{"local time", "v", `{"time":"2026-01-02T03:04:05","lon":7.1,"lat":50.2}`, "", fleet.PoisonBadTime},
		{"time is a number", "v", `{"time":5,"lon":7.1,"lat":50.2}`, "", fleet.PoisonBadTime},
		{"fraction of a millisecond", "v", `{"t_ms":1.5,"lon":7.1,"lat":50.2}`, "", fleet.PoisonBadTime},
		{"microseconds as milliseconds", "v", `{"t_ms":1615703474876000,"lon":7.1,"lat":50.2}`, "", fleet.PoisonBadTime},
		{"times differ", "v", `{"t_ms":5,` + good + "}", "", fleet.PoisonBadTime},
		{"too old", "v", `{"time":"2026-01-02T02:04:04Z","lon":7.1,"lat":50.2}`, "", fleet.PoisonTimeRange},
		{"future", "v", `{"time":"2026-01-02T04:04:06Z","lon":7.1,"lat":50.2}`, "", fleet.PoisonTimeRange},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := config()
			cfg.MaxAge = time.Hour
			r := &stream.Record{Key: []byte(c.key), Timestamp: stamp}
			if c.value != "" {
				r.Value = []byte(strings.TrimPrefix(c.value, "-"))
			}
			if c.contentType != "" {
				r.Headers = []stream.Header{{Key: "Content-Type", Value: []byte(c.contentType)}}
			}
			_, err := workload(t, cfg, fleet.Map{}).Decode(r)
			var p *commit.PoisonError
			if !errors.As(err, &p) {
				t.Fatalf("got %v, want poison %s", err, c.want)
			}
			if p.Reason != c.want {
				t.Errorf("got %s (%s), want %s", p.Reason, p.Detail, c.want)
			}
			if p.Detail == "" || len(p.Detail) > 160 {
				t.Errorf("detail %q: want a short word for people", p.Detail)
			}
		})
	}
}

// A3: the poison reasons of TestDecodePoison are the whole closed list; each is there once.
func TestPoisonReasonsAreClosed(t *testing.T) {
	seen := map[string]bool{}
	for _, list := range [][]string{fleet.PoisonReasons(), fleet.ResetReasons(), fleet.Dispositions()} {
		for _, r := range list {
			if seen[r] && r != fleet.OffRoad {
				t.Errorf("%s is there twice", r)
			}
			seen[r] = true
		}
	}
	for _, r := range fleet.TerminalReasons() {
		if !seen[r] {
			t.Errorf("terminal reason %s is no disposition", r)
		}
	}
}

// Design 10: what a good record means; unknown fields are ignored, numbers for "unknown" are not given.
func TestDecodeGood(t *testing.T) {
	nan := math.NaN()
	at := time.Date(2026, 1, 2, 3, 4, 5, 250_000_000, time.UTC)
	place := roadnet.Point{Lon: -75.5, Lat: 39.7}
	for _, c := range []struct {
		value string
		want  fleet.Fix
	}{
		{
			`{"time":"2026-01-02T04:04:05.25+01:00","lon":-75.5,"lat":39.7}`,
			fleet.Fix{Observation: mapmatch.Observation{Time: at, Point: place, AccuracyM: nan, SpeedMPS: nan, Heading: nan}},
		},
		{
			` { "t_ms" : 1767323045250 , "lon":-7.55e1, "lat":39.7, "vehicle":"v\u00e9", "speed_mps":3, "heading_deg":361.5, "accuracy_m":4,
			"provider":"gps", "vehicle_class":"bus", "x":{"lon":[1,{"lat":null}],"y":true} } `,
			fleet.Fix{
				Vehicle: "vé", Provider: "gps", VehicleClass: "bus",
				Observation: mapmatch.Observation{Time: at, Point: place, AccuracyM: 4, SpeedMPS: 3, Heading: 1.5},
			},
		},
		{
			`{"t_ms":1767323045250,"time":"2026-01-02T03:04:05.2500004Z","lon":-75.5,"lat":39.7,"speed_mps":-1,"heading_deg":-1,"accuracy_m":null,"vehicle":42}`,
			fleet.Fix{Vehicle: "42", Observation: mapmatch.Observation{Time: at, Point: place, AccuracyM: nan, SpeedMPS: nan, Heading: nan}},
		},
	} {
		got, err := fleet.DecodeFix([]byte(c.value))
		if err != nil {
			t.Errorf("%s: %v", c.value, err)
			continue
		}
		if d := cmp.Diff(c.want, got, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%s: %s", c.value, d)
		}
		again, err := fleet.DecodeFix(fleet.AppendFix(nil, &got))
		if err != nil {
			t.Errorf("encoded again: %v", err)
		}
		if d := cmp.Diff(got, again, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("encoded again: %s", d)
		}
	}
}

// Every decoder is fuzzed: no input panics, an error is always a poison reason of the closed list, what decodes is sane (T: M25) and
// encodes to the same again; and what the scanner takes for an object the standard library does too, but for the numbers JSON lacks.
func FuzzDecodeFix(f *testing.F) {
	for _, s := range []string{
		`{"time":"2026-01-02T03:04:05Z","lon":7.1,"lat":50.2,"vehicle":"a\n","speed_mps":1e2}`, `{"t_ms":-5,"lon":1,"lat":NaN}`,
		`{"a":[1,{"b":"\\\""}],"lon":0,"lat":0}`, `{"lon":-0.0e-1,"lat":1E+1,"t_ms":0}`, `{`, `{"a":01}`, "{\"\x00\":1}", `{"a":tru}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fix, err := fleet.DecodeFix(b)
		if err != nil {
			var p *commit.PoisonError
			if !errors.As(err, &p) || !slices.Contains(fleet.PoisonReasons(), p.Reason) {
				t.Fatalf("got %v, want a poison reason", err)
			}
			return
		}
		if !json.Valid(b) && !strings.Contains(string(b), "NaN") && !strings.Contains(string(b), "Infinity") {
			t.Errorf("%q is no JSON", b)
		}
		if p := fix.Point; !(math.Abs(p.Lat) <= 90 && math.Abs(p.Lon) <= 180) || fix.Time.IsZero() || fix.SpeedMPS < 0 {
			t.Errorf("%q gave %+v", b, fix)
		}
		again, err := fleet.DecodeFix(fleet.AppendFix(nil, &fix))
		if err != nil {
			t.Fatalf("encoded again: %v", err)
		}
		if d := cmp.Diff(fix, again, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("encoded again: %s", d)
		}
	})
}
