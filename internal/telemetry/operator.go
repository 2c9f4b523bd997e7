package telemetry

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// maxTokenBytes is more than any token has.
const maxTokenBytes = 4096

// Operators guards what only an operator may ask of a process. Without a token file these are the programs of this machine; with one, who
// sends its token, from anywhere. No web page of a browser on this machine is one of them.
type Operators struct {
	// TokenFile holds the bearer token; it is read at each request, so that whoever renews it writes the file anew. Empty: there is none.
	TokenFile string
}

// Check reads the token file, so that a wrong one is an error of the start.
func (o Operators) Check() error {
	if o.TokenFile == "" {
		return nil
	}
	_, err := ReadToken(o.TokenFile)
	return err
}

// ReadToken reads a file with a bearer token. Its errors name the file by the last part of its path.
func ReadToken(path string) (Secret, error) {
	b, err := readToken(path)
	if err != nil {
		if e := (*os.PathError)(nil); errors.As(err, &e) {
			err = e.Err
		}
		return "", fmt.Errorf("read the token in %s: %w", filepath.Base(path), err)
	}
	token := strings.TrimSpace(string(b))
	switch {
	case token == "":
		return "", fmt.Errorf("read the token in %s: the file is empty", filepath.Base(path))
	case len(token) > maxTokenBytes || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("read the token in %s: want one word of printable characters, at most %d", filepath.Base(path), maxTokenBytes)
	}
	return Secret(token), nil
}

// readToken reads no more than shows that a file is too long for a token: it may be a device without an end.
func readToken(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return io.ReadAll(io.LimitReader(f, 2*maxTokenBytes))
}

// Only serves h to operators and refuses everyone else before h sees the request.
func (o Operators) Only(h http.HandlerFunc) http.HandlerFunc {
	var browsers http.CrossOriginProtection
	return func(w http.ResponseWriter, r *http.Request) {
		if err := browsers.Check(r); err != nil {
			http.Error(w, "a web page may not ask for this", http.StatusForbidden)
			return
		}
		if o.TokenFile == "" {
			// The host too: a page whose name was made to lead here would still name itself.
			if !isLoopback(r.RemoteAddr) || !isLoopback(r.Host) {
				http.Error(w, "only programs on this machine may ask for this, by a loopback address; --operator-token-file lets others", http.StatusForbidden)
				return
			}
			h(w, r)
			return
		}
		token, err := ReadToken(o.TokenFile)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || !equal(given, string(token)) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "this wants the operators' bearer token", http.StatusUnauthorized)
			return
		}
		h(w, r)
	}
}

// equal takes the same time whatever is different.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// isLoopback reports whether an address, with or without a port, is this machine's own.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
