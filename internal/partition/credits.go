package partition

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// Bound limits what is in flight in a scope.
type Bound struct{ Jobs, Bytes int64 }

// CreditsConfig holds the bounds of admission (A1, A8).
type CreditsConfig struct {
	Global Bound
	Region Bound            // of each region
	Own    map[string]Bound // of regions with bounds of their own; a zero in one means Region's
}

// DefaultCreditsConfig gives the defaults.
func DefaultCreditsConfig() CreditsConfig {
	return CreditsConfig{Global: Bound{4096, 512 << 20}, Region: Bound{1024, 128 << 20}}
}

// Credits bound the jobs in flight of a process: one object that its partitions share, besides the commit stages the only one. Nobody
// waits in it: what cannot be admitted gets a number and is told when its turn has come, first come first served, in each region and
// over all of them. The lock is held for list operations only.
type Credits struct {
	mu      sync.Mutex
	cfg     CreditsConfig
	global  scope
	regions []*regionScope // by name
	number  uint64
	waiting int
}

// scope is what a bound bounds.
type scope struct {
	bound       Bound
	jobs, bytes int64
}

// fits reports whether a job may come in. One that is bigger than the whole bound may when nothing else is there.
func (s *scope) fits(bytes int64) bool {
	return s.jobs == 0 || s.jobs < s.bound.Jobs && bytes <= s.bound.Bytes-s.bytes
}

func (s *scope) add(jobs, bytes int64) { s.jobs, s.bytes = s.jobs+jobs, s.bytes+bytes }

type regionScope struct {
	scope
	name    string
	queue   creditList // who waits, oldest first
	waiting int
	held    int64 // how often somebody had to wait
}

// credit is a job's admission, or its place in the line.
type credit struct {
	share      *Share
	region     *regionScope
	bytes      int64
	number     uint64
	waits      bool
	returned   bool
	key        *key
	prev, next *credit
}

// NewCredits makes credits.
func NewCredits(cfg CreditsConfig) *Credits {
	return &Credits{cfg: cfg, global: scope{bound: cfg.Global}}
}

// Share is one machine's part of the credits: what it holds and what it waits for. Its methods are its machine's, but for Leave.
type Share struct {
	c      *Credits
	notify func()
	ready  atomic.Bool // granted is not empty

	// Under Credits.mu:
	granted []*credit
	held    map[*regionScope]*scope
	left    bool
}

// Join gives a machine its share. notify is called, on any goroutine and without a lock held, when credit has come for a key that waits:
// the machine is to be stepped with Admitted. It must not block.
func (c *Credits) Join(notify func()) *Share {
	return &Share{c: c, notify: notify, held: map[*regionScope]*scope{}}
}

// ask admits a job, or puts it in line: nobody overtakes.
func (s *Share) ask(region string, bytes int64, k *key) (cr *credit, admitted bool) {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.region(region)
	c.number++
	cr = &credit{share: s, region: r, bytes: bytes, number: c.number, key: k}
	if r.queue.first == nil && r.fits(bytes) && c.global.fits(bytes) && !c.globallyHeld() {
		c.admit(cr)
		return cr, true
	}
	cr.waits = true
	r.queue.push(cr)
	r.waiting++
	r.held++
	c.waiting++
	return cr, false
}

// globallyHeld reports whether somebody waits whose own region has room: then the global bound holds everybody.
func (c *Credits) globallyHeld() bool {
	if c.waiting == 0 {
		return false
	}
	for _, r := range c.regions {
		if w := r.queue.first; w != nil && r.fits(w.bytes) {
			return true
		}
	}
	return false
}

func (c *Credits) admit(cr *credit) {
	cr.region.add(1, cr.bytes)
	c.global.add(1, cr.bytes)
	h := cr.share.held[cr.region]
	if h == nil {
		h = &scope{}
		cr.share.held[cr.region] = h
	}
	h.add(1, cr.bytes)
}

// giveBack ends a job's admission, or its wait, once.
func (s *Share) giveBack(cr *credit) {
	s.c.mu.Lock()
	if cr.returned || s.left {
		s.c.mu.Unlock()
		return
	}
	cr.returned = true
	if cr.waits {
		s.c.unqueue(cr)
	} else {
		cr.region.add(-1, -cr.bytes)
		s.c.global.add(-1, -cr.bytes)
		s.held[cr.region].add(-1, -cr.bytes)
	}
	told := s.c.grant()
	s.c.mu.Unlock()
	tell(told, s)
}

// take gives the keys whose turn has come since the last call, in the order of their numbers.
func (s *Share) take() []*credit {
	if !s.ready.Load() {
		return nil
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	got := s.granted
	s.granted = nil
	s.ready.Store(false)
	return slices.DeleteFunc(got, func(cr *credit) bool { return cr.returned })
}

// Leave gives back whatever the share still holds and waits for. It may be called more than once; the share is of no use afterwards.
func (s *Share) Leave() {
	if s == nil {
		return
	}
	c := s.c
	c.mu.Lock()
	if s.left {
		c.mu.Unlock()
		return
	}
	s.left = true
	for _, r := range c.regions {
		for w := r.queue.first; w != nil; {
			next := w.next
			if w.share == s {
				c.unqueue(w)
			}
			w = next
		}
		if h := s.held[r]; h != nil {
			r.add(-h.jobs, -h.bytes)
			c.global.add(-h.jobs, -h.bytes)
		}
	}
	s.granted, s.held = nil, nil
	told := c.grant()
	c.mu.Unlock()
	tell(told, s)
}

// grant admits those whose turn has come and gives their shares. Among the regions' first ones that their region has room for, the one who
// came first is next; where the global bound holds that one, nobody overtakes it.
func (c *Credits) grant() (told []*Share) {
	for c.waiting > 0 {
		var next *credit
		for _, r := range c.regions {
			if w := r.queue.first; w != nil && r.fits(w.bytes) && (next == nil || w.number < next.number) {
				next = w
			}
		}
		if next == nil || !c.global.fits(next.bytes) {
			return told
		}
		c.unqueue(next)
		c.admit(next)
		s := next.share
		s.granted = append(s.granted, next)
		if !s.ready.Swap(true) {
			told = append(told, s)
		}
	}
	return told
}

// tell wakes the machines whose keys were admitted; the one that gave the credit back looks by itself before its step ends.
func tell(shares []*Share, except *Share) {
	for _, s := range shares {
		if s != except {
			s.notify()
		}
	}
}

func (c *Credits) unqueue(cr *credit) {
	cr.region.queue.remove(cr)
	cr.waits = false
	cr.region.waiting--
	c.waiting--
}

// region finds a region's scope, made when it is not there.
func (c *Credits) region(name string) *regionScope {
	at, ok := slices.BinarySearchFunc(c.regions, name, func(r *regionScope, name string) int { return cmp.Compare(r.name, name) })
	if !ok {
		r := &regionScope{name: name}
		r.bound = c.boundOf(name)
		c.regions = slices.Insert(c.regions, at, r)
	}
	return c.regions[at]
}

func (c *Credits) boundOf(name string) Bound {
	own := c.cfg.Own[name]
	return Bound{Jobs: cmp.Or(own.Jobs, c.cfg.Region.Jobs), Bytes: cmp.Or(own.Bytes, c.cfg.Region.Bytes)}
}

// Configure changes the bounds, as a new catalog asks; what is in flight stays. Regions without anything in flight are forgotten.
func (c *Credits) Configure(cfg CreditsConfig) {
	c.mu.Lock()
	c.cfg, c.global.bound = cfg, cfg.Global
	c.regions = slices.DeleteFunc(c.regions, func(r *regionScope) bool { return r.jobs == 0 && r.waiting == 0 && r.held == 0 })
	for _, r := range c.regions {
		r.bound = c.boundOf(r.name)
	}
	told := c.grant()
	c.mu.Unlock()
	tell(told, nil)
}

// Usage is what is in flight in a scope.
type Usage struct {
	Region      string // empty: all regions together
	Jobs, Bytes int64
	Waiting     int   // keys
	Held        int64 // how often a job had to wait, so far
}

// Usage gives what is in flight: all together first, then each region by name.
func (c *Credits) Usage() []Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := Usage{Jobs: c.global.jobs, Bytes: c.global.bytes, Waiting: c.waiting}
	usages := make([]Usage, 1, len(c.regions)+1)
	for _, r := range c.regions {
		all.Held += r.held
		usages = append(usages, Usage{Region: r.name, Jobs: r.jobs, Bytes: r.bytes, Waiting: r.waiting, Held: r.held})
	}
	usages[0] = all
	return usages
}

// creditList is a line of those who wait.
type creditList struct{ first, last *credit }

func (l *creditList) push(cr *credit) {
	cr.prev, cr.next = l.last, nil
	if l.last == nil {
		l.first = cr
	} else {
		l.last.next = cr
	}
	l.last = cr
}

func (l *creditList) remove(cr *credit) {
	if cr.prev == nil {
		l.first = cr.next
	} else {
		cr.prev.next = cr.next
	}
	if cr.next == nil {
		l.last = cr.prev
	} else {
		cr.next.prev = cr.prev
	}
	cr.prev, cr.next = nil, nil
}
