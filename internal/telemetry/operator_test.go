package telemetry_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"milepost/internal/telemetry"
)

// asked is an operator's request as a server sees it.
type asked struct {
	remote, host string
	headers      map[string]string
}

func (a asked) request(t *testing.T) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+a.host+"/catalog/reload", http.NoBody)
	r.RemoteAddr = a.remote
	for k, v := range a.headers {
		r.Header.Set(k, v)
	}
	return r
}

func answerTo(t *testing.T, o telemetry.Operators, a asked) (code int, body string, served bool) {
	t.Helper()
	w := httptest.NewRecorder()
	o.Only(func(http.ResponseWriter, *http.Request) { served = true })(w, a.request(t))
	return w.Code, w.Body.String(), served
}

// A20, F31: without a token only programs of this machine are operators, by a loopback address; no other machine, no web page in a browser of
// this machine, and no page behind a name that was made to lead here.
func TestOperatorsOfThisMachine(t *testing.T) {
	for name, c := range map[string]struct {
		asked
		want int
	}{
		"IPv4":                   {asked{"127.0.0.1:4000", "127.0.0.1:9464", nil}, 200},
		"IPv6":                   {asked{"[::1]:4000", "[::1]:9464", nil}, 200},
		"IPv4 in IPv6":           {asked{"[::ffff:127.0.0.1]:4000", "localhost:9464", nil}, 200},
		"by name":                {asked{"127.0.0.1:4000", "localhost", nil}, 200},
		"another machine":        {asked{"10.0.0.7:4000", "127.0.0.1:9464", nil}, 403},
		"a name that leads here": {asked{"127.0.0.1:4000", "evil.example:9464", nil}, 403},
		"a page elsewhere":       {asked{"127.0.0.1:4000", "127.0.0.1:9464", map[string]string{"Origin": "https://evil.example"}}, 403},
		"a page, as told by the browser": {
			asked{"127.0.0.1:4000", "127.0.0.1:9464", map[string]string{"Sec-Fetch-Site": "cross-site"}}, 403,
		},
		"nobody": {asked{"", "", nil}, 403},
	} {
		code, _, served := answerTo(t, telemetry.Operators{}, c.asked)
		if code != c.want || served != (c.want == 200) {
			t.Errorf("%s: %d, served %t, want %d", name, code, served, c.want)
		}
	}
}

// A20, F31, B13: with a token file its token is asked for, from this machine too; it may be renewed in place, and no answer has it or the
// file's folder in it.
func TestOperatorsByToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "operator.token")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := telemetry.Operators{TokenFile: file}
	far := func(headers map[string]string) asked { return asked{"10.0.0.7:4000", "worker:9464", headers} }
	expect := func(what string, a asked, want int) {
		t.Helper()
		code, body, served := answerTo(t, o, a)
		if code != want || served != (want == 200) {
			t.Errorf("%s: %d %q, served %t, want %d", what, code, body, served, want)
		}
		if strings.Contains(body, "s3cret") || strings.Contains(body, filepath.Dir(file)) {
			t.Errorf("%s: the answer is %q", what, body)
		}
	}
	bearer := map[string]string{"Authorization": "Bearer s3cret-1"}
	if err := o.Check(); err == nil || strings.Contains(err.Error(), filepath.Dir(file)) {
		t.Errorf("without the file: %v", err)
	}
	expect("without the file", far(bearer), 503)
	write("s3cret-1\n")
	if err := o.Check(); err != nil {
		t.Error(err)
	}
	expect("the token", far(bearer), 200)
	expect("none", far(nil), 401)
	expect("none, from this machine", asked{"127.0.0.1:4000", "127.0.0.1:9464", nil}, 401)
	expect("another", far(map[string]string{"Authorization": "Bearer s3cret-2"}), 401)
	expect("a part of it", far(map[string]string{"Authorization": "Bearer s3cret"}), 401)
	expect("another scheme", far(map[string]string{"Authorization": "Basic s3cret-1"}), 401)
	expect("a page with the token", far(map[string]string{"Authorization": "Bearer s3cret-1", "Origin": "https://evil.example"}), 403)
	write("s3cret-2")
	expect("the former one", far(bearer), 401)
	expect("the renewed one", far(map[string]string{"Authorization": "Bearer s3cret-2"}), 200)
	for _, bad := range []string{"", "\n", "two words", "caf\u00e9", strings.Repeat("x", 5000)} {
		write(bad)
		if err := o.Check(); err == nil {
			t.Errorf("a file with %.20q is taken", bad)
		}
		expect("a spoilt file", far(bearer), 503)
	}
}
