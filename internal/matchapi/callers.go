package matchapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// callers says who may ask. Without a token these are the programs of this machine; with one, who sends it, from anywhere. No web page of
// a browser on this machine is one of them.
type callers struct {
	token    func() (string, error) // nil: there is none
	browsers http.CrossOriginProtection
	log      *slog.Logger
}

// check gives nil for who may ask.
func (c *callers) check(r *http.Request) *Problem {
	if c.browsers.Check(r) != nil {
		return problem(http.StatusForbidden, codeForbidden, "", "a web page of another origin may not ask for this")
	}
	if c.token == nil {
		// The host too: a page whose name was made to lead here would still name itself.
		if !isLoopback(r.RemoteAddr) || !isLoopback(r.Host) {
			return problem(http.StatusForbidden, codeForbidden, "", "only programs on this machine may ask for this, by a loopback address; a token (--match-token-file) lets others")
		}
		return nil
	}
	want, err := c.token()
	if err != nil {
		c.log.LogAttrs(r.Context(), slog.LevelError, "match a trace", slog.Any("err", err))
		return problem(http.StatusInternalServerError, codeInternal, "", "the token cannot be read; the service's log says why")
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	if !ok || want == "" || subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
		return problem(http.StatusUnauthorized, codeUnauthorized, "", "this wants a bearer token")
	}
	return nil
}

// isLoopback says whether an address, with a port or without, is of this machine alone.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
