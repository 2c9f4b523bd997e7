package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// Secret is a value that must never be printed.
type Secret string

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// LogValue hides the value in log lines.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Format is how log lines look.
type Format string

// The formats of log lines.
const (
	FormatAuto Format = "auto" // text on a terminal, JSON otherwise
	FormatText Format = "text"
	FormatJSON Format = "json"
)

// NewLogger makes the process's logger.
func NewLogger(w io.Writer, f Format, level slog.Level) (*slog.Logger, error) {
	switch f {
	case FormatAuto:
		if !isTerminal(w) {
			return NewLogger(w, FormatJSON, level)
		}
		return NewLogger(w, FormatText, level)
	case FormatText:
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !isTerminal(w)})), nil
	case FormatJSON:
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: readable})), nil
	}
	return nil, fmt.Errorf("log format is %q, must be auto, text or json", string(f))
}

// readable writes durations as people do, "1.5s": slog's JSON has bare nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// ParseLevel reads a log level: debug, info, warn or error.
func ParseLevel(s string) (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(strings.ToUpper(s))); err != nil {
		return 0, fmt.Errorf("log level is %q, must be debug, info, warn or error", s)
	}
	return level, nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
