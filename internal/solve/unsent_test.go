package solve

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// lines is a log that may be written and read at once.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), part)
}

// A9: a request that no broker takes is counted each time and told now and then, with its region and the reason, and stops nothing: its job is
// tried again at the next deadline.
func TestUnsentRequestsAreTold(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		t := r.t
		log := &lines{}
		r.remote.cfg.Log = slog.New(slog.NewTextHandler(log, nil))
		r.matcher("m1", poolFunc(echo))
		r.send(dispatch("warm", 1, 0))
		r.result()
		if deleted, err := kadm.NewClient(r.client).DeleteTopics(t.Context(), requests); err != nil || deleted.Error() != nil {
			t.Fatal(err, deleted)
		}
		for n := range int64(5) {
			r.send(dispatch("lost", n+2, 0))
		}
		r.eventually("five requests to be given up", func() bool { return r.remote.Stats().Unsent >= 5 })
		if n := log.count("could not be sent"); n != 1 || log.count("region=default") != 1 {
			t.Errorf("it was told %d times:\n%s", n, log.b.String())
		}
	})
}
