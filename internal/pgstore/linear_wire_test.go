package pgstore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// badWire dials connections that lose statements or their answers, and may change the SQL on its way.
type badWire struct {
	lose     int    // of a thousand statements
	old, new string // in the SQL; new is not longer

	mu      sync.Mutex
	rng     *rand.Rand
	lost    int
	changed int
}

var errLost = errors.New("the test cut the connection")

func (w *badWire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &badConn{Conn: c, wire: w}, nil
}

// fate says what becomes of a statement: 0 nothing, 1 it never arrives, 2 nobody waits for it, 3 its answer is lost.
func (w *badWire) fate() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lose == 0 || w.rng.IntN(1000) >= w.lose {
		return 0
	}
	w.lost++
	return 1 + w.rng.IntN(3)
}

func (w *badWire) mutate(b []byte) []byte {
	if w.old == "" || !bytes.Contains(b, []byte(w.old)) {
		return b
	}
	padded := append([]byte(w.new), bytes.Repeat([]byte{' '}, len(w.old)-len(w.new))...)
	w.mu.Lock()
	w.changed++
	w.mu.Unlock()
	return bytes.ReplaceAll(b, []byte(w.old), padded)
}

type badConn struct {
	net.Conn
	wire *badWire
}

// Write sees whole messages: pgx writes what it flushes with one call. One that begins with a bind runs a statement.
func (c *badConn) Write(b []byte) (int, error) {
	b = c.wire.mutate(b)
	if b[0] != 'B' {
		return c.Conn.Write(b)
	}
	fate := c.wire.fate()
	if fate == 0 {
		return c.Conn.Write(b)
	}
	defer func() { _ = c.Close() }()
	if fate == 1 {
		return 0, errLost
	}
	n, err := c.Conn.Write(b)
	if err == nil && fate == 3 {
		_, _ = io.ReadFull(c.Conn, make([]byte, 1)) // the answer has begun: the statement was run
	}
	return n, err
}

// A mutation that no statement holds any more would be caught by nobody and prove nothing.
func (w *badWire) mustHaveChanged(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.old != "" && w.changed == 0 {
		t.Fatalf("no statement holds %q", w.old)
	}
}
