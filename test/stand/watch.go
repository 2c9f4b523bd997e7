package stand

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Watch reads the outputs as they become visible to a read_committed reader and remembers when the first of each raw partition's epochs came.
type Watch struct {
	mu    sync.Mutex
	first map[epochOf]time.Time
}

type epochOf struct {
	partition int32
	epoch     int64
}

// Watch starts to read; it ends with the test.
func (j *Job) Watch(tb testing.TB) *Watch {
	tb.Helper()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(j.stand.Kafka.Addrs()...), kgo.ConsumeTopics(j.Prefix+".matched"), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.AlwaysRetryEOF(),
	)
	if err != nil {
		tb.Fatal(err)
	}
	w := &Watch{first: map[epochOf]time.Time{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			fetches := client.PollFetches(ctx)
			if ctx.Err() != nil {
				return
			}
			w.take(fetches, time.Now())
		}
	})
	tb.Cleanup(func() {
		cancel()
		wg.Wait()
		client.Close()
	})
	return w
}

func (w *Watch) take(fetches kgo.Fetches, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fetches.EachRecord(func(r *kgo.Record) {
		epoch, err := strconv.ParseInt(Header(r, "ce_epoch"), 10, 64)
		partition, err2 := strconv.ParseInt(fromRight(Header(r, "ce_id"), 3), 10, 32)
		if err != nil || err2 != nil {
			return
		}
		at := epochOf{int32(partition), epoch}
		if _, there := w.first[at]; !there {
			w.first[at] = now
		}
	})
}

// fromRight gives the n-th word from the right of <raw topic>/<topic generation>/<partition>/<offset>/<index>.
func fromRight(id string, n int) string {
	words := strings.Split(id, "/")
	if len(words) < n {
		return ""
	}
	return words[len(words)-n]
}

// First says when the first output of the raw partition's epoch could be read.
func (w *Watch) First(partition int32, epoch int64) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.first[epochOf{partition, epoch}]
	return at, ok
}
