package matchapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// Problem is an error as a client gets it: application/problem+json.
type Problem struct {
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
	Pointer string `json:"pointer,omitempty"` // JSON pointer into the request
	Limit   int64  `json:"limit,omitempty"`   // that was exceeded
}

// The codes, a closed list.
const (
	codeNotJSON      = "not_json"
	codeBadValue     = "bad_value"
	codeMissing      = "missing_value"
	codeUnsupported  = "unsupported_value"
	codeTooLarge     = "body_too_large"
	codeTooMany      = "too_many_points"
	codeTooFew       = "too_few_points"
	codeMediaType    = "unsupported_media_type"
	codeMethod       = "method_not_allowed"
	codeForbidden    = "forbidden"
	codeUnauthorized = "unauthorized"
	codeSlow         = "request_too_slow"
	codeBusy         = "busy"
	codeTimeLimit    = "time_limit"
	codeInternal     = "internal"
)

// Codes lists every code.
func Codes() []string {
	return []string{
		codeNotJSON, codeBadValue, codeMissing, codeUnsupported, codeTooLarge, codeTooMany, codeTooFew, codeMediaType, codeMethod, codeForbidden, codeUnauthorized, codeSlow,
		codeBusy, codeTimeLimit, codeInternal,
	}
}

func problem(status int, code, pointer, format string, args ...any) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: fmt.Sprintf(format, args...), Pointer: pointer}
}

func badValue(pointer, format string, args ...any) *Problem {
	return problem(http.StatusBadRequest, codeBadValue, pointer, format, args...)
}

// retrySeconds is when a client that found no room may come again.
const retrySeconds = 1

func (p *Problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	switch p.Status {
	case http.StatusTooManyRequests:
		h.Set("Retry-After", strconv.Itoa(retrySeconds))
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	case http.StatusMethodNotAllowed:
		h.Set("Allow", http.MethodPost)
	}
	w.WriteHeader(p.Status)
	b, err := json.Marshal(p)
	if err != nil { // texts and numbers always have a JSON form
		return
	}
	_, _ = w.Write(append(b, '\n')) // a client that has gone needs no answer
}
