//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The same seed gives the same plan, another one another; no two faults break one part at the same time, and they do overlap.
func TestPlan(t *testing.T) {
	overlaps, kinds, seen := 0, map[string]bool{}, map[string]bool{}
	for seed := range uint64(60) {
		p := newPlan(seed, 115, 1+2*int(seed%2), -1)
		if diff := cmp.Diff(p, newPlan(seed, 115, p.Brokers, -1)); diff != "" {
			t.Fatalf("seed %d gives two plans:\n%s", seed, diff)
		}
		text, err := json.Marshal(p.Faults)
		if err != nil {
			t.Fatal(err)
		}
		if seen[string(text)] {
			t.Errorf("seed %d has the faults of an earlier one", seed)
		}
		seen[string(text)] = true
		until := map[string]time.Duration{}
		last := time.Duration(0)
		for _, f := range p.Faults {
			kinds[f.Kind] = true
			for _, part := range f.parts() {
				if until[part] > f.At {
					t.Errorf("seed %d: %s begins while %s is broken", seed, f, part)
				}
				until[part] = f.At + f.For
			}
			if f.At < last {
				overlaps++
			}
			last = max(last, f.At+f.For)
			if f.Kind == pauseWorker && f.For <= session {
				t.Errorf("seed %d: %s is no longer than a session", seed, f)
			}
			if f.At > 115*time.Second {
				t.Errorf("seed %d: %s is after the end", seed, f)
			}
		}
	}
	if overlaps < 200 {
		t.Errorf("%d faults of 60 plans overlap an earlier one, want hundreds", overlaps)
	}
	for _, k := range append(kindsOf(3), addPartitions) {
		if !kinds[k] {
			t.Errorf("no plan of 60 has a fault %s", k)
		}
	}
}

// Every mode pair that the program takes is in the list: deferred without transactions is refused by it.
func TestModes(t *testing.T) {
	if n := len(modes()); n != 6 {
		t.Errorf("%d modes, want 6", n)
	}
}

// echo is a server that answers each byte, and says what it got.
func echo(t *testing.T) (address string, got chan byte) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got = make(chan byte, 100) // more than any test sends
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 1)
			for {
				if _, err := io.ReadFull(c, b); err != nil {
					break
				}
				got <- b[0]
				if _, err := c.Write(b); err != nil {
					break
				}
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String(), got
}

func ask(t *testing.T, c net.Conn, b byte, patience time.Duration) error {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte{b}); err != nil {
		return err
	}
	answer := make([]byte, 1)
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	if answer[0] != b {
		return fmt.Errorf("answer %q to %q", answer[0], b)
	}
	return nil
}

// P35: a link passes, is late, is a hole that lets go again, refuses, and loses the answer to what the server did get.
func TestProxy(t *testing.T) {
	target, got := echo(t)
	p, err := newProxy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.point(target)
	dial := func() net.Conn {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", p.address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	const long = 20 * time.Second
	c := dial()
	if err := ask(t, c, 'a', long); err != nil {
		t.Fatalf("a good link: %v", err)
	}
	p.set(weather{delay: 60 * time.Millisecond})
	began := time.Now()
	if err := ask(t, c, 'b', long); err != nil || time.Since(began) < 120*time.Millisecond {
		t.Errorf("a slow link answered within %s: %v", time.Since(began), err)
	}
	p.set(weather{hole: true})
	if err := ask(t, c, 'c', 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a hole: %v, want a time-out", err)
	}
	p.set(weather{})
	if err := c.SetDeadline(time.Now().Add(long)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Errorf("after the hole: %v", err)
	}
	for range 3 {
		<-got
	}
	p.set(weather{swallow: true})
	if err := ask(t, c, 'd', 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a link that loses answers: %v, want a time-out", err)
	}
	if b := <-got; b != 'd' {
		t.Errorf("the server got %q, want d", b)
	}
	waitFor(t, "the answer is lost", func() bool { return p.swallowed() == 1 })
	p.set(weather{down: true})
	p.cut()
	if err := ask(t, c, 'e', long); err == nil {
		t.Error("a link that was cut answers")
	}
	// It may be refused while it is made, or later.
	if refused, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", p.address()); err == nil {
		if err := ask(t, refused, 'f', long); err == nil {
			t.Error("a link that is down answers")
		}
		_ = refused.Close()
	}
	p.set(weather{})
	if err := ask(t, dial(), 'g', long); err != nil {
		t.Errorf("a link that was healed: %v", err)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !ok() {
		if pause(ctx, 5*time.Millisecond) != nil {
			t.Fatalf("never: %s", what)
		}
	}
}

// A worker that ends by itself is started again and told of, one that is killed stays down, and a panic is found in what it said.
func TestWorkerIsStartedAgain(t *testing.T) {
	dir := t.TempDir()
	once := filepath.Join(dir, "once")
	script := "if [ ! -e " + once + " ]; then touch " + once + "; echo 'panic: I3 broken' >&2; exit 2; fi; exec sleep 600"
	w := &worker{name: "w", program: "/bin/sh", args: []string{"-c", script}, dir: dir}
	t.Cleanup(w.close)
	if err := w.start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the second start", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.starts == 2 && w.process != nil
	})
	first := w.ended()
	if len(first) != 1 || first[0].Code != 2 || !strings.Contains(first[0].Panic, "I3 broken") {
		t.Errorf("the first end: %+v", first)
	}
	w.kill()
	waitFor(t, "the end of the second", func() bool { return len(w.ended()) == 2 })
	if code := w.terminate(t.Context(), time.Second); code != 0 {
		t.Errorf("a worker that is down ends with %d", code)
	}
}
