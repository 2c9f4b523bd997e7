//go:build failpoint

package main

import (
	"context"
	bytewise "encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
	"milepost/internal/consumer"
)

// The points, one at each arrow of the commit protocol. At each the other side has done what was asked and its answer is here, but nobody
// knows it yet; at endSent the request is written and nobody has waited.
const (
	pointAcquired = "acquired"
	pointPrepared = "prepared"
	pointProduced = "produced"
	pointOffsets  = "offsets-added"
	pointEndSent  = "end-sent"
	pointEnded    = "end-answered"
	pointPromoted = "promoted"
	pointFrontier = "frontier-written"
	pointHint     = "hint-committed"
)

// What happens there, once.
const (
	actError = "error" // the answer is lost
	actHang  = "hang"  // the answer is late; the rest of the process goes on
	actStop  = "stop"  // the process stands still until somebody lets it go on
	actExit  = "exit"  // as kill -9
)

// failpointEnv holds <point>=<action>. A point is armed by SIGUSR1, but pointAcquired from the start.
const failpointEnv = "FAILPOINT"

// hangTime is longer than the session time-outs of the tests.
const hangTime = 4 * time.Second

var errFailpoint = errors.New("failpoint: the answer was lost")

// failpoints break the program at chosen points: this build is for test/failpoints.
type failpoints struct{ *failpoint }

type failpoint struct {
	point, action string
	armed, fired  atomic.Bool
}

func newFailpoints() (failpoints, error) {
	setting := os.Getenv(failpointEnv)
	if setting == "" {
		return failpoints{&failpoint{}}, nil
	}
	point, action, _ := strings.Cut(setting, "=")
	points := []string{
		pointAcquired, pointPrepared, pointProduced, pointOffsets, pointEndSent, pointEnded, pointPromoted, pointFrontier, pointHint,
	}
	if !slices.Contains(points, point) || !slices.Contains([]string{actError, actHang, actStop, actExit}, action) {
		return failpoints{}, fmt.Errorf("%s=%s: want <point>=<action>", failpointEnv, setting)
	}
	f := &failpoint{point: point, action: action}
	f.armed.Store(point == pointAcquired)
	arm := make(chan os.Signal, 1)
	signal.Notify(arm, syscall.SIGUSR1)
	go func() {
		for range arm {
			f.armed.Store(true)
		}
	}()
	return failpoints{f}, nil
}

// at is called where the program is at a point; an error means that the answer is lost.
func (f *failpoint) at(point string) error {
	if f.point != point || !f.armed.Load() || !f.fired.CompareAndSwap(false, true) {
		return nil
	}
	// Past every buffer: the next line may be the last.
	_, _ = fmt.Fprintf(os.Stderr, "failpoint %s: %s\n", f.point, f.action)
	switch f.action {
	case actExit:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case actStop:
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case actHang:
		time.Sleep(hangTime)
	default:
		return errFailpoint
	}
	return nil
}

// consuming makes what happens every few seconds happen within a test.
func (f failpoints) consuming(c consumer.Config) consumer.Config {
	c.HintInterval = 400 * time.Millisecond
	return c
}

func (f failpoints) store(s commit.Store) commit.Store { return failingStore{s, f.failpoint} }

type failingStore struct {
	commit.Store
	f *failpoint
}

func (s failingStore) Prepare(ctx context.Context, batch []commit.Commit) ([]commit.PrepareVerdict, error) {
	v, err := s.Store.Prepare(ctx, batch)
	return answered(s.f, pointPrepared, v, err)
}

func (s failingStore) Promote(ctx context.Context, batch []commit.Promotion) ([]error, error) {
	v, err := s.Store.Promote(ctx, batch)
	return answered(s.f, pointPromoted, v, err)
}

func (s failingStore) SaveFrontier(ctx context.Context, batch []commit.FrontierWrite) ([]error, error) {
	v, err := s.Store.SaveFrontier(ctx, batch)
	return answered(s.f, pointFrontier, v, err)
}

func answered[T any](f *failpoint, point string, verdicts []T, err error) ([]T, error) {
	if err == nil {
		err = f.at(point)
	}
	if err != nil {
		return nil, err
	}
	return verdicts, nil
}

func (f failpoints) owners(o commit.Owners) commit.Owners { return failingOwners{o, f.failpoint} }

type failingOwners struct {
	commit.Owners
	f *failpoint
}

func (o failingOwners) Acquire(ctx context.Context, claims []commit.Claim) ([]bool, error) {
	won, err := o.Owners.Acquire(ctx, claims)
	return answered(o.f, pointAcquired, won, err)
}

// clients makes the Kafka clients dial connections that know the requests by their API keys.
func (f failpoints) clients() []kgo.Opt {
	return []kgo.Opt{kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &failingConn{Conn: c, f: f.failpoint, asked: map[int32]string{}}, nil
	})}
}

// failingConn sees whole requests, for franz-go writes each with one call, and gives answers on only when they are whole.
type failingConn struct {
	net.Conn
	f     *failpoint
	mu    sync.Mutex
	asked map[int32]string // points, by the requests' correlation ids
	rest  []byte           // of an answer; one goroutine reads
}

func (c *failingConn) Write(b []byte) (int, error) {
	point := c.note(b)
	n, err := c.Conn.Write(b)
	if point == pointEndSent && err == nil {
		if err = c.f.at(point); err != nil {
			_ = c.Close()
		}
	}
	return n, err
}

// note remembers a request whose answer is the point, and tells of one whose sending is.
func (c *failingConn) note(request []byte) string {
	if len(request) < 12 {
		return ""
	}
	key := kmsg.Key(bytewise.BigEndian.Uint16(request[4:]))
	if key == kmsg.EndTxn && c.f.point == pointEndSent {
		return pointEndSent
	}
	if point := answerOf()[key]; point != "" && point == c.f.point {
		c.mu.Lock()
		c.asked[int32(bytewise.BigEndian.Uint32(request[8:]))] = point
		c.mu.Unlock()
	}
	return ""
}

// answerOf gives the points that are answers to requests.
func answerOf() map[kmsg.Key]string {
	return map[kmsg.Key]string{
		kmsg.Produce: pointProduced, kmsg.TxnOffsetCommit: pointOffsets, kmsg.OffsetCommit: pointHint, kmsg.EndTxn: pointEnded,
	}
}

func (c *failingConn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// next takes a whole answer: its size, then the correlation id and the rest.
func (c *failingConn) next() error {
	var size [4]byte
	if _, err := io.ReadFull(c.Conn, size[:]); err != nil {
		return err
	}
	answer := make([]byte, 4+bytewise.BigEndian.Uint32(size[:]))
	copy(answer, size[:])
	if _, err := io.ReadFull(c.Conn, answer[4:]); err != nil {
		return err
	}
	if len(answer) >= 8 {
		id := int32(bytewise.BigEndian.Uint32(answer[4:]))
		c.mu.Lock()
		point, asked := c.asked[id]
		delete(c.asked, id)
		c.mu.Unlock()
		if asked {
			if err := c.f.at(point); err != nil {
				_ = c.Close()
				return err
			}
		}
	}
	c.rest = answer
	return nil
}
