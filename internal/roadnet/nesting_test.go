package roadnet

import (
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// H, P26: a text of opening brackets, which would take the parser's stack and the process with it, is refused; what stands in strings and
// comments is text.
func TestCheckNesting(t *testing.T) {
	const million = 1 << 20
	deep := strings.Repeat("[", 100)
	for name, text := range map[string]string{
		"arrays":                  "a = " + strings.Repeat("[", million),
		"inline tables":           "a = " + strings.Repeat("{a=", million),
		"dotted key":              strings.Repeat("a.", million) + "a = 1",
		"dotted table":            "[" + strings.Repeat("a.", million) + "a]",
		"after a string":          `a = ["x", ` + deep,
		"after an escaped quote":  `a = ["\"", ` + deep,
		"after a literal":         `a = ['\', ` + deep,
		"after four quotes":       `a = ["""x"""", ` + deep,
		"after five quotes":       `a = ['''x''''', ` + deep,
		"after an open string":    "a = \"x\nb = " + deep,
		"after a comment":         "a = 1 # \"\nb = " + deep,
		"after an escaped escape": `a = ["""\\""", ` + deep,
	} {
		if err := CheckNesting([]byte(text)); err == nil || !strings.Contains(err.Error(), "deeper than 64 levels") {
			t.Errorf("%s: error %v", name, err)
		}
		if _, err := ParseProfiles("p.toml", []byte(text[:min(len(text), maxProfiles)])); err == nil {
			t.Errorf("%s: profiles are taken", name)
		}
	}
	for name, text := range map[string]string{
		"in a string":         `a = "` + deep + `"`,
		"in a literal":        `a = '` + deep + `'`,
		"in a long string":    "a = \"\"\"\n" + deep + "\n\"" + deep + "\"\"\"",
		"in a comment":        "# " + deep,
		"opened and closed":   "a = [" + strings.Repeat("[1],", 1000) + "]",
		"as many as may be":   "a = " + strings.Repeat("[", 64) + strings.Repeat("]", 64),
		"many tables":         strings.Repeat("[[a]]\nb = 1.5\n", 1000),
		"many dots in values": "a = [" + strings.Repeat("1.5, ", 1000) + "]",
	} {
		if err := CheckNesting([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzCheckNesting: what passes is no deeper than the parser finds it; the scan agrees with the parser about what a bracket is.
func FuzzCheckNesting(f *testing.F) {
	for _, seed := range []string{
		"a = [[1], {b = [2]}]", "a = \"[\"\nb = '''['''\n", "a = [\"\"\"x\"\"\"\", [[1]]]", "[a.b.c]\nd.e = 1.5 # [", "a = \"\\\"[\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v map[string]any
		if err := CheckNesting(text); err != nil || toml.Unmarshal(text, &v) != nil {
			return
		}
		if got := nesting(v); got > 4*maxNesting {
			t.Errorf("nests %d deep", got)
		}
	})
}

func nesting(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			deepest = max(deepest, 1+nesting(x))
		}
	case []any:
		for _, x := range v {
			deepest = max(deepest, 1+nesting(x))
		}
	}
	return deepest
}
