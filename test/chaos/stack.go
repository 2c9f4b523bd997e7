//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/devstack"
)

// session is how long a worker may be silent before the group gives its partitions away.
const session = 3 * time.Second

// stack is a real Kafka and a real Postgres, and for each worker links of its own to every server.
type stack struct {
	kafka    *devstack.Kafka
	postgres *devstack.Postgres
	data     string // Postgres' folder
	disk     *disk  // nil: it cannot be filled here
	noDisk   string // why

	toKafka    [workers]links // by node
	toPostgres [workers]*proxy
}

func startStack(ctx context.Context, brokers int, log *slog.Logger) (s *stack, err error) {
	s = &stack{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	advertise, listeners := map[string][]string{}, map[string]string{}
	for w := range workers {
		name := "WORKER" + strconv.Itoa(w)
		listeners[name] = "PLAINTEXT"
		for range brokers {
			p, err := newProxy(ctx)
			if err != nil {
				return s, err
			}
			s.toKafka[w] = append(s.toKafka[w], p)
			advertise[name] = append(advertise[name], p.address())
		}
		if s.toPostgres[w], err = newProxy(ctx); err != nil {
			return s, err
		}
	}
	if err := s.startPostgres(ctx, log); err != nil {
		return s, err
	}
	ms := strconv.FormatInt(session.Milliseconds(), 10)
	s.kafka, err = devstack.StartKafka(ctx, devstack.KafkaConfig{
		Brokers: brokers, Listeners: listeners, Advertise: advertise, HeapMB: 400, Logger: log,
		Settings: map[string]string{
			"group.min.session.timeout.ms": "1000", "offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4",
			"group.consumer.min.session.timeout.ms": ms, "group.consumer.session.timeout.ms": ms,
			"group.consumer.min.heartbeat.interval.ms": "500", "group.consumer.heartbeat.interval.ms": "500",
			"default.replication.factor": strconv.Itoa(min(brokers, 3)), "min.insync.replicas": strconv.Itoa(min(brokers, 2)),
			// A broker that is killed comes back; a slow machine is no dead one.
			"broker.session.timeout.ms": "9000",
		},
	})
	if err != nil {
		return s, err
	}
	for w := range workers {
		for node, addr := range s.kafka.ListenerAddrs("WORKER" + strconv.Itoa(w)) {
			s.toKafka[w][node].point(addr)
		}
		u, err := url.Parse(s.postgres.DSN())
		if err != nil {
			return s, err
		}
		s.toPostgres[w].point(u.Host)
	}
	return s, nil
}

func (s *stack) startPostgres(ctx context.Context, log *slog.Logger) error {
	dir, err := os.MkdirTemp("", "milepost-chaos-pg-")
	if err != nil {
		return err
	}
	s.data = dir
	if s.disk, err = newDisk(dir, 512); err != nil {
		s.noDisk = err.Error()
	}
	s.postgres, err = devstack.StartPostgres(ctx, devstack.PostgresConfig{Dir: dir, Logger: log, Settings: map[string]string{
		"max_wal_size": "64MB", "min_wal_size": "32MB", "shared_buffers": "64MB", "max_connections": "120",
	}})
	return err
}

// stop ends everything. A part that was never started is passed over.
func (s *stack) stop() error {
	var errs []error
	for w := range workers {
		for _, p := range s.toKafka[w] {
			p.Close()
		}
		if s.toPostgres[w] != nil {
			s.toPostgres[w].Close()
		}
	}
	if s.kafka != nil {
		errs = append(errs, s.kafka.Stop())
	}
	if s.postgres != nil {
		errs = append(errs, s.postgres.Stop())
	}
	if s.disk != nil {
		errs = append(errs, s.disk.close())
	}
	if s.data != "" {
		errs = append(errs, os.RemoveAll(s.data))
	}
	return errors.Join(errs...)
}

// client gives a client that no fault touches but those of the servers themselves.
func (s *stack) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(s.kafka.Addrs()...), kgo.MetadataMaxAge(5 * time.Second), kgo.MetadataMinAge(100 * time.Millisecond)}, opts...)...)
}

// through gives a database's URL over a worker's link.
func (s *stack) through(w int, dsn string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", err
	}
	u.Host = s.toPostgres[w].address()
	return u.String(), nil
}

// brokersOf are a worker's bootstrap addresses.
func (s *stack) brokersOf(w int) string {
	var all []string
	for _, p := range s.toKafka[w] {
		all = append(all, p.address())
	}
	return strings.Join(all, ",")
}

// killPostgres ends the postmaster and every backend with SIGKILL. The postmaster stands still meanwhile, so that it makes no new one.
func (s *stack) killPostgres() error {
	b, err := os.ReadFile(filepath.Join(s.data, "data", "postmaster.pid"))
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return fmt.Errorf("postmaster.pid: %w", err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	for _, child := range append(childrenOf(pid), pid) {
		if err := syscall.Kill(child, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// childrenOf lists a process's children.
func childrenOf(pid int) (children []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // gone
		}
		_, rest, ok := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest)
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); ok && err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			children = append(children, child)
		}
	}
	return children
}

// restartPostgres starts the server until it answers. One that still runs, or ends again for want of space, is tried again.
func (s *stack) restartPostgres(ctx context.Context) error {
	for {
		bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := s.postgres.Restart(bounded)
		cancel()
		if err == nil {
			return nil
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// disk is a small file system of Postgres' own that can be filled.
type disk struct{ at, ballast string }

func newDisk(at string, mb int) (*disk, error) {
	if err := syscall.Mount("tmpfs", at, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0755", mb)); err != nil {
		return nil, fmt.Errorf("mount a file system to fill: %w", err)
	}
	return &disk{at: at, ballast: filepath.Join(at, "ballast")}, nil
}

// fill leaves no byte.
func (d *disk) fill() error {
	f, err := os.Create(d.ballast)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for chunk := make([]byte, 256<<10); len(chunk) > 0; {
		if _, err := f.Write(chunk); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				return err
			}
			chunk = chunk[:len(chunk)/2]
		}
	}
	return nil
}

func (d *disk) free() error {
	if err := os.Remove(d.ballast); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (d *disk) close() error { return syscall.Unmount(d.at, 0) }
