package loop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// call makes an event of a tool; arguments and result are JSON or text.
func call(tool, args, result string) Event {
	return Event{Tool: tool, Args: rawOf(args), Result: rawOf(result)}
}

func rawOf(s string) json.RawMessage {
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	quoted, _ := json.Marshal(s) // a string always encodes
	return quoted
}

func say(text string) Event { return Event{Text: text} }

// series makes n events.
func series(n int, f func(i int) Event) []Event {
	out := make([]Event, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

func tripsAt(events []Event) int {
	j := Judge(&Session{Events: events})
	return j.Tripped
}

// B4: what repeats and learns nothing trips at the end of its third period, whatever noise is on it.
func TestLoopsTrip(t *testing.T) {
	ab := func(names ...string) func(int) Event {
		return func(i int) Event {
			n := names[i%len(names)]
			return call(n, fmt.Sprintf(`{"path":"src/%s.go"}`, n), "contents of "+n+" as they were, all of them")
		}
	}
	for name, c := range map[string]struct {
		period int
		f      func(i int) Event
	}{
		"the same call": {1, func(int) Event { return call("search", `{"q":"refund policy"}`, `{"hits":[]}`) }},
		"a nonce among the arguments": {1, func(i int) Event {
			return call("get_user", fmt.Sprintf(`{"user":"ann","request_id":"r-%d"}`, i*7919%1000), `{"name":"Ann Lee","plan":"basic"}`)
		}},
		"a nonce that is a plain number": {1, func(i int) Event {
			return call("lookup", fmt.Sprintf(`{"query":"opening hours","n":%d}`, []int{512, 90, 847, 333, 610, 71, 902, 18, 444, 207}[i]), `the shop is open from nine to five on weekdays`)
		}},
		"an error with noise": {1, func(i int) Event {
			return call("run", `{"cmd":"make"}`, fmt.Sprintf("2026-05-01T10:00:%02dZ error 0x%x7f3a: no rule to make target (pid %d)", i, i*7919+0xabcde0, 4000+i*i))
		}},
		"ping-pong":       {2, ab("alpha", "beta")},
		"three in a ring": {3, ab("alpha", "beta", "gamma")},
		"five in a ring":  {5, ab("alpha", "beta", "gamma", "delta", "epsilon")},
		"edit and undo": {2, func(i int) Event {
			return call("edit", fmt.Sprintf(`{"file":"a.go","old":"x%d","new":"x%d"}`, i%2, (i+1)%2), `{"ok":true}`)
		}},
		"the same text": {1, func(int) Event { return say("The configuration file seems to be broken, I will repair it.") }},
		"one text with other beginnings": {1, func(i int) Event {
			return say([]string{"OK.", "Hmm, wait.", "Right, let me think again.", "Maybe", "Once more:", "Alright,"}[i%6] + " The configuration file seems broken, so I should repair the parser.")
		}},
		"questions that differ by their order": {1, func(i int) Event {
			return call("search", []string{`{"q":"cheap flights Oslo Rome"}`, `{"q":"flights Oslo Rome cheap"}`, `{"q":"Oslo Rome flights cheap tickets"}`, `{"q":"cheap Oslo Rome flights"}`}[i%4], `{"results":[],"total":0}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			events := append(honest(5), series(10*c.period, c.f)...)
			if got, want := tripsAt(events), 5+3*c.period; got == 0 || got > want {
				t.Errorf("tripped at %d, want by %d", got, want)
			} else if got <= 5+c.period {
				t.Errorf("tripped at %d, before anything repeated", got)
			}
		})
	}
}

func honest(n int) []Event {
	return series(n, func(i int) Event {
		w := []string{"harbour", "meadow", "lantern", "granite", "violet", "copper"}[i%6]
		return call("read_file", `{"path":"docs/`+w+`.md"}`, "this page tells about the "+w+" and how it came to be")
	})
}

// B4: work that repeats, and learns or gets on, does not trip.
func TestWorkDoesNotTrip(t *testing.T) {
	for name, f := range map[string]func(i int) Event{
		"pages": func(i int) Event {
			return call("list", fmt.Sprintf(`{"page":%d}`, i+1), fmt.Sprintf(`{"items":["item-%d","item-%d"],"next":%d}`, 2*i, 2*i+1, i+2))
		},
		"a cursor": func(i int) Event {
			return call("list", fmt.Sprintf(`{"cursor":"c%dx"}`, i), fmt.Sprintf(`{"users":["%c%c"]}`, 'a'+i%26, 'b'+i/26))
		},
		"a job's percentage": func(i int) Event {
			return call("job_status", `{"job":"j1"}`, fmt.Sprintf(`{"state":"running","percent":%d}`, 3*i))
		},
		"rows": func(i int) Event {
			return call("insert", fmt.Sprintf(`{"row":%d,"name":"n%d"}`, i, i), `{"ok":true}`)
		},
		"rows out of order": func(i int) Event {
			return call("approve", fmt.Sprintf(`{"invoice":%d}`, i*7919%1000), `{"status":"ok"}`)
		},
		"tests after each change": func(i int) Event {
			if i%2 == 0 {
				return call("edit", fmt.Sprintf(`{"file":"f%d.go","new":"line %d"}`, i%3, i), `{"ok":true}`)
			}
			return call("run", `{"cmd":"go test"}`, "FAIL: 3 tests failed")
		},
		"files": func(i int) Event {
			return call("read", fmt.Sprintf(`{"path":"f%d.go"}`, i), fmt.Sprintf("package f%d does thing number %d", i, i*i))
		},
		"records told": func(i int) Event { return say(fmt.Sprintf("Processed record %d of 200 and filed it.", i+1)) },
		"a gauge": func(i int) Event {
			return call("read_sensor", `{"id":"t1"}`, fmt.Sprintf(`{"celsius":%d.%d}`, 20+i*i%7, i*i*i%10))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tripsAt(append(honest(3), series(60, f)...)); got != 0 {
				t.Errorf("tripped at %d", got)
			}
		})
	}
}

// B4: what waits, or is pending, is given longer and not for ever.
func TestPatience(t *testing.T) {
	pending := series(40, func(int) Event { return call("job_status", `{"job":"j1"}`, `{"state":"pending"}`) })
	if got := tripsAt(pending); got != morePatient {
		t.Errorf("a job that stays pending trips at %d, want %d", got, morePatient)
	}
	if got := tripsAt(append(pending[:5:5], call("job_status", `{"job":"j1"}`, `{"state":"done","url":"x"}`))); got != 0 {
		t.Errorf("a job that is done at last trips at %d", got)
	}
	retries := series(12, func(i int) Event {
		if i%2 == 1 {
			return call("sleep", fmt.Sprintf(`{"seconds":%d}`, 1<<i), "null")
		}
		return call("fetch", `{"url":"a"}`, "503 Service Unavailable")
	})
	if got := tripsAt(retries[:9]); got != 0 {
		t.Errorf("five tries with pauses between trip at %d", got)
	}
}

// L3, L4, C2: nothing that is an argument or a result fails, and what is kept stays bounded.
func TestAnyBytes(t *testing.T) {
	var d Detector
	deep := strings.Repeat("[", 100_000)
	for i := range 20 {
		for _, v := range []string{`{"id":1234567890123456789}`, deep, "\xff\xfe", "", "null", `"{\"a\":1}"`, strings.Repeat("x ", 40_000), `{"a":1}{"b":2}`, "1e999", fmt.Sprint(`{"n":`, i, `}`)} {
			d.Step(Event{Tool: "t", Args: json.RawMessage(v), Result: json.RawMessage(v), Text: v})
		}
	}
	if len(d.window) > maxWindow || len(d.known.has) > maxKnown || len(d.known.order) > maxKnown {
		t.Errorf("%d steps, %d known", len(d.window), len(d.known.has))
	}
}

// L5: tripped stays until it is reset.
func TestReset(t *testing.T) {
	var d Detector
	for range 3 {
		d.Step(call("a", `{}`, "x y z"))
	}
	if got := d.Step(honest(1)[0]); got.State != Tripped {
		t.Errorf("after a trip: %+v", got)
	}
	d.Reset()
	if got := d.Step(call("a", `{}`, "x y z")); got.State != Progressing {
		t.Errorf("after a reset: %+v", got)
	}
}
