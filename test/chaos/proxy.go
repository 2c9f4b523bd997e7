//go:build linux

package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// weather is what a link does to what passes.
type weather struct {
	delay   time.Duration // of each piece, both ways
	hole    bool          // nothing passes, connections stay
	down    bool          // connections are refused
	swallow bool          // what the client says passes, what the server answers does not
}

// proxy is a link between one worker and one server that can be made bad. Its goroutines are the listener's and two a connection; Close ends
// and awaits them.
type proxy struct {
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	target  string
	now     weather
	changed chan struct{} // closed and replaced at each change
	conns   map[net.Conn]struct{}
	closed  bool
	passed  int64 // connections
	lost    int64 // answers' bytes that were swallowed
}

func newProxy(ctx context.Context) (*proxy, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, changed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	p.running.Go(p.accept)
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// point says where the server is.
func (p *proxy) point(target string) {
	p.mu.Lock()
	p.target = target
	p.mu.Unlock()
}

// set changes the weather.
func (p *proxy) set(w weather) {
	p.mu.Lock()
	p.now = w
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
}

// cut resets every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		reset(c)
	}
}

// reset closes a connection as a broken one is closed, so that no buffered byte arrives.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // a connection that is gone already
	}
	_ = c.Close()
}

// Close ends the proxy and its connections.
func (p *proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.set(weather{down: true})
	p.cut()
	p.running.Wait()
}

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		p.running.Go(func() { p.serve(c) })
	}
}

func (p *proxy) serve(client net.Conn) {
	p.mu.Lock()
	target, down := p.target, p.now.down || p.closed || p.target == ""
	p.mu.Unlock()
	if down {
		reset(client)
		return
	}
	server, err := (&net.Dialer{Timeout: 2 * time.Second}).Dial("tcp4", target)
	if err != nil {
		reset(client)
		return
	}
	if !p.take(client, server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pump(client, server, false) })
	both.Go(func() { p.pump(server, client, true) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, client)
	delete(p.conns, server)
	p.mu.Unlock()
}

func (p *proxy) take(client, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.now.down {
		reset(client)
		reset(server)
		return false
	}
	p.passed++
	p.conns[client], p.conns[server] = struct{}{}, struct{}{}
	return true
}

// pump carries bytes one way until either end is gone; then both are.
func (p *proxy) pump(from, to net.Conn, answers bool) {
	defer reset(from)
	defer reset(to)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && p.admit(answers, n) {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// admit holds a piece back as long as the weather says; false: it is lost.
func (p *proxy) admit(answers bool, n int) bool {
	waited := false
	for {
		p.mu.Lock()
		w, changed := p.now, p.changed
		if answers && w.swallow {
			p.lost += int64(n)
			p.mu.Unlock()
			return false
		}
		p.mu.Unlock()
		if w.down {
			return false // it is about to be cut: what follows lost bytes must not pass
		}
		if !w.hole && (w.delay == 0 || waited) {
			return true
		}
		if w.hole {
			<-changed
			continue
		}
		late := time.NewTimer(w.delay)
		select {
		case <-late.C:
			waited = true
		case <-changed:
		}
		late.Stop()
	}
}

// swallowed gives how many bytes of answers were lost so far.
func (p *proxy) swallowed() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// links are all proxies between one worker and one kind of server.
type links []*proxy

func (l links) set(w weather) {
	for _, p := range l {
		p.set(w)
	}
}

func (l links) cut() {
	for _, p := range l {
		p.cut()
	}
}

func (l links) swallowed() (n int64) {
	for _, p := range l {
		n += p.swallowed()
	}
	return n
}
