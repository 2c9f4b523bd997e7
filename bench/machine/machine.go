package machine

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Describe names how many cores there are, the processor and the version of Go.
func Describe() string {
	return fmt.Sprintf("%d cores, %s, %s", runtime.NumCPU(), processor(), runtime.Version())
}

func processor() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return "unknown processor"
}

// Load is the load average over 1, 5 and 15 minutes.
func Load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(b))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

// Revision is the commit that this program was built from, as the go command stamped it, and whether files differed from it. Only go build
// stamps (-buildvcs=true); under go run and go test it is "unknown".
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	at, changed := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			at = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	return at + changed
}
