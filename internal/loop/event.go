package loop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
)

// Event is one step of a session.
type Event struct {
	// Tool is the name of the tool that was called; empty: the step is a text alone.
	Tool string `json:"tool"`
	// Args and Result are JSON of any kind, or text that is not JSON.
	Args   json.RawMessage `json:"args,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	// Text is what the agent said. Beside a call it is not looked at: words are cheap.
	Text string `json:"text,omitempty"`
}

// Limits of what is looked at of one event (L3).
const (
	maxBytes  = 16 << 10 // of arguments, result or text each
	maxDepth  = 32
	maxFacts  = 64
	maxTokens = 128
)

// step is an event without its noise.
type step struct {
	call    side
	result  side
	kind    resultKind
	excused bool // says itself that it waits or tries again later
	text    bool // no tool was called
}

// side is the arguments, or the result, or the text of a step.
type side struct {
	shape   uint64   // of the tool and the names of its values
	facts   []uint64 // hashes of the values with their places, sorted; numbers are not among them
	words   []uint64 // hashes of the content words of all values, sorted
	numbers []number // in order
	exact   uint64   // of all of it
	prose   bool     // a value is a sentence, or a question
	counted bool     // a number stands beside a word that says what it counts: a row, a page, a percentage
}

type number struct {
	place  uint64 // of the path, or of the words around it
	value  float64
	digits uint64 // hash of the digits as they are written
}

func hashOf(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = io.WriteString(h, p) // a hash does not fail
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// read reduces an event.
func read(e *Event) step {
	if e.Tool == "" {
		c := newCollector("")
		c.text("", e.Text[:min(len(e.Text), maxBytes)], true)
		return step{call: c.side(), text: true}
	}
	args := newCollector(strings.ToLower(e.Tool))
	args.raw(e.Args)
	result := newCollector("")
	result.durations = true
	result.raw(e.Result)
	s := step{call: args.side(), result: result.side()}
	s.kind = kindOf(result.plain.String(), len(s.result.facts)+len(s.result.numbers))
	polls := mentions(e.Tool, isPollWord)
	if s.kind == pending && !polls {
		s.kind = ack
	}
	s.excused = s.kind != failing && polls || s.kind == failing && transient(result.plain.String())
	return s
}

// waits says whether an event is nothing but a pause between others.
func waits(e *Event) bool {
	words := strings.FieldsFunc(strings.ToLower(e.Tool), func(r rune) bool { return !isLetter(r) })
	if slices.ContainsFunc(words, isWaitWord) {
		return true
	}
	args := strings.TrimSpace(string(e.Args))
	return len(args) < 60 && sleepCommand.MatchString(args)
}

// transient tells a failure that may pass by its words.
func transient(plain string) bool {
	return strings.Contains(plain, "timeout") || strings.Contains(plain, "timed out") || mentions(plain, isTransientWord)
}

// collector walks a value and gathers what it says.
type collector struct {
	tool      string
	durations bool // numbers with a unit of time are noise
	names     []string
	s         side
	plain     strings.Builder // the words, to be searched for what kind of result this is
}

func newCollector(tool string) *collector { return &collector{tool: tool} }

// raw takes JSON, or text that is none, or text in a JSON string that is JSON itself.
func (c *collector) raw(v json.RawMessage) {
	v = v[:min(len(v), maxBytes)]
	if len(bytes.TrimSpace(v)) == 0 || string(v) == "null" {
		return
	}
	parsed, err := parse(v)
	if err != nil {
		c.text("", string(v), false)
		return
	}
	if s, ok := parsed.(string); ok {
		if inner, err := parse([]byte(s)); err == nil {
			switch inner.(type) {
			case map[string]any, []any:
				parsed = inner
			}
		}
	}
	c.value("", parsed, 0)
}

func parse(v []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber() // an integer beyond 2^53 is its digits (L4)
	var out any
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return out, nil
}

func (c *collector) value(path string, v any, depth int) {
	if depth > maxDepth {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			if noisyKey(k) {
				continue
			}
			c.names = append(c.names, path+"."+k)
			c.plain.WriteString(" " + strings.ToLower(k) + ":")
			c.value(path+"."+strings.ToLower(k), v[k], depth+1)
		}
	case []any:
		for _, e := range v {
			c.value(path+"[]", e, depth+1)
		}
	case json.Number:
		c.number(path, string(v), path)
	case string:
		c.text(path, v, false)
	case bool:
		c.fact(path, fmt.Sprint(v))
	}
}

func (c *collector) fact(path, value string) {
	c.plain.WriteString(" " + value)
	c.s.facts = append(c.s.facts, hashOf(path, value))
	c.s.words = append(c.s.words, hashOf(value))
}

func (c *collector) number(path, digits, beside string) {
	if isEpoch(digits) {
		return
	}
	c.plain.WriteString(" " + digits)
	var value float64
	if _, err := fmt.Sscan(digits, &value); err != nil {
		value = float64(hashOf(digits) >> 12)
	}
	c.s.numbers = append(c.s.numbers, number{hashOf(path, beside), value, hashOf(digits)})
	if counts(beside) {
		c.s.counted = true
	}
}

// side sorts and bounds what was gathered.
func (c *collector) side() side {
	s := c.s
	slices.Sort(s.facts)
	slices.Sort(s.words)
	s.facts, s.words = slices.Compact(s.facts), slices.Compact(s.words)
	s.shape = hashOf(append([]string{c.tool}, c.names...)...)
	h := []string{c.tool}
	for _, f := range s.facts {
		h = append(h, fmt.Sprint(f))
	}
	for _, n := range s.numbers {
		h = append(h, fmt.Sprint(n.place, n.digits))
	}
	s.exact = hashOf(h...)
	s.facts, s.words = s.facts[:min(len(s.facts), maxFacts)], s.words[:min(len(s.words), maxTokens)]
	s.numbers = s.numbers[:min(len(s.numbers), maxFacts)]
	return s
}
