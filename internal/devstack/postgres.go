package devstack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	superuser      = "postgres"
	defaultName    = "milepost" // database
	startAttempts  = 3          // another process may take the port first
	postgresGrace  = 10 * time.Second
	readyInterval  = 50 * time.Millisecond
	passwordFile   = "password"
	postgresLog    = "postgres.log"
	dataFolderMode = 0o700
)

// PostgresConfig configures a Postgres server. The zero value is a server on a
// folder of its own that Stop removes.
type PostgresConfig struct {
	// Dir holds the data, the password and the log; it is made if missing,
	// and a server started again on it goes on with the same data. Empty: a
	// temporary folder, removed by Stop.
	Dir string
	// Unsafe switches fsync, synchronous_commit and full_page_writes off. The
	// data does not survive a crash of the machine (it does survive Kill).
	Unsafe bool
	// Fetch takes the Postgres of Maven Central even where one is installed.
	Fetch bool
	// Settings are server settings by name; they win over the defaults here.
	Settings map[string]string
	// Logger hears about downloads and starts; nil is silent.
	Logger *slog.Logger
}

// Postgres is a running server.
type Postgres struct {
	config   PostgresConfig
	bin      string
	dir      string
	who      *account
	owned    bool // the folder is ours to remove
	port     int
	password string
	process  *process
}

// StartPostgres starts a server and returns when it answers: an installed one
// of version 15 or newer, else one fetched from Maven Central. ctx bounds the
// start, not the server's life; Stop ends it.
func StartPostgres(ctx context.Context, c PostgresConfig) (*Postgres, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	who, err := serverAccount()
	if err != nil {
		return nil, err
	}
	find := findPostgres
	if c.Fetch {
		find = fetchPostgres
	}
	bin, err := find(ctx, c.Logger)
	if err != nil {
		return nil, err
	}
	p := &Postgres{config: c, bin: bin, who: who}
	if err := p.prepareFolder(); err != nil {
		return nil, err
	}
	if err := p.initialise(ctx); err != nil {
		return nil, errors.Join(err, p.removeFolder())
	}
	if err := p.startSomewhere(ctx); err != nil {
		return nil, errors.Join(err, p.removeFolder())
	}
	c.Logger.InfoContext(ctx, "postgres is up", slog.Int("port", p.port))

	return p, nil
}

// DSN is the URL of the server's database, as its superuser.
func (p *Postgres) DSN() string { return p.dsn(defaultName) }

func (p *Postgres) dsn(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, p.password),
		Host: "127.0.0.1:" + strconv.Itoa(p.port), Path: "/" + database, RawQuery: "sslmode=disable",
	}

	return u.String()
}

// NewDatabase makes an empty database of that name and returns its URL.
func (p *Postgres) NewDatabase(ctx context.Context, name string) (string, error) {
	conn, err := pgx.Connect(ctx, p.dsn(superuser))
	if err != nil {
		return "", fmt.Errorf("connect to make database %s: %w", name, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", fmt.Errorf("make database %s: %w", name, err)
	}

	return p.dsn(name), nil
}

// Kill ends the server as a crash would, without a checkpoint; Restart brings
// it back on the same port and data.
func (p *Postgres) Kill() error {
	// SIGQUIT: the postmaster and its backends drop everything at once. A
	// SIGKILL of the postmaster alone would leave backends that still hold
	// the shared memory when Restart comes.
	return p.process.stop(postgresGrace, syscall.SIGQUIT)
}

// Restart starts the server again after Kill.
func (p *Postgres) Restart(ctx context.Context) error {
	if p.process != nil && p.process.alive() {
		return errors.New("restart postgres: it still runs")
	}

	return p.start(ctx)
}

// Pause stops the server and all its backends in their tracks: connections stay
// open and nothing answers. Resume lets them go on. Linux only.
func (p *Postgres) Pause() error {
	// The postmaster first: it makes no further backend then.
	if err := p.process.pause(); err != nil {
		return err
	}
	if err := p.signalBackends(syscall.SIGSTOP); err != nil {
		return err
	}
	pids, err := childrenOf(p.process.pid)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := awaitStopped("a backend", pid); err != nil {
			return err
		}
	}

	return nil
}

// Resume lets the server go on after Pause.
func (p *Postgres) Resume() error {
	return errors.Join(p.signalBackends(syscall.SIGCONT), p.process.signal(syscall.SIGCONT))
}

func (p *Postgres) signalBackends(sig syscall.Signal) error {
	// Each backend leads a process group of its own.
	pids, err := childrenOf(p.process.pid)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal a backend with %s: %w", sig, err)
		}
	}

	return nil
}

// Stop ends the server, in order where it lets itself, and removes the folder
// if it was temporary. It may be called twice.
func (p *Postgres) Stop() error {
	// A paused server cannot end in order.
	var resume error
	if p.process.alive() {
		resume = p.Resume()
	}
	// SIGINT: fast shutdown, sessions are ended; SIGQUIT: immediate.
	err := p.process.stop(postgresGrace, syscall.SIGINT, syscall.SIGQUIT)

	return errors.Join(resume, err, p.removeFolder())
}

func (p *Postgres) prepareFolder() error {
	p.dir = p.config.Dir
	if p.dir == "" {
		dir, err := os.MkdirTemp("", "milepost-postgres-")
		if err != nil {
			return fmt.Errorf("make the database's folder: %w", err)
		}
		p.dir, p.owned = dir, true
	}
	abs, err := filepath.Abs(p.dir)
	if err != nil {
		return fmt.Errorf("resolve the database's folder: %w", err)
	}
	p.dir = abs
	if err := os.MkdirAll(p.dir, dataFolderMode); err != nil {
		return fmt.Errorf("make the database's folder: %w", err)
	}
	if p.who == nil {
		return nil
	}
	if err := os.Chown(p.dir, int(p.who.uid), int(p.who.gid)); err != nil {
		return fmt.Errorf("give the database's folder to its user: %w", err)
	}

	return reachable(p.dir, p.who)
}

// initialise makes the data folder and the password, or reads the password of
// the folder that is there.
func (p *Postgres) initialise(ctx context.Context) error {
	file := filepath.Join(p.dir, passwordFile)
	if _, err := os.Stat(p.dataDir()); err == nil {
		b, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the database's password: %w", err)
		}
		p.password = strings.TrimSpace(string(b))

		return nil
	}
	p.password = rand.Text()
	if err := os.WriteFile(file, []byte(p.password+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the database's password: %w", err)
	}
	if p.who != nil {
		if err := os.Chown(file, int(p.who.uid), int(p.who.gid)); err != nil {
			return fmt.Errorf("give the password to the database's user: %w", err)
		}
	}
	// Built beside its place, so that a start that was broken off leaves no
	// half data folder.
	work := p.dataDir() + ".part"
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("clear an unfinished data folder: %w", err)
	}
	args := []string{
		"-D", work, "-U", superuser, "-E", "UTF8", "--locale=C", "--no-sync",
		"--auth=scram-sha-256", "--pwfile=" + file,
	}
	if _, err := runTool(ctx, command{name: "initdb", path: filepath.Join(p.bin, "initdb"), args: args, dir: p.dir, who: p.who}, ""); err != nil {
		return err
	}
	if err := os.Rename(work, p.dataDir()); err != nil {
		return fmt.Errorf("finish the data folder: %w", err)
	}

	return nil
}

func (p *Postgres) dataDir() string { return filepath.Join(p.dir, "data") }

// startSomewhere starts on a port that was free, again on another when
// somebody took it meanwhile, and makes the database.
func (p *Postgres) startSomewhere(ctx context.Context) error {
	var err error
	for range startAttempts {
		var ports []int
		if ports, err = freePorts(ctx, 1); err != nil {
			return err
		}
		p.port = ports[0]
		if err = p.start(ctx); err == nil {
			break
		}
		if !strings.Contains(err.Error(), "could not bind") {
			return err
		}
	}
	if err != nil {
		return err
	}
	if _, err := p.NewDatabase(ctx, defaultName); err != nil && !strings.Contains(err.Error(), "42P04") {
		return errors.Join(err, p.process.stop(postgresGrace, syscall.SIGQUIT))
	}

	return nil
}

// start runs the server and waits until it answers; a server that does not is
// ended.
func (p *Postgres) start(ctx context.Context) error {
	logFile := filepath.Join(p.dir, postgresLog)
	if err := rotate(logFile); err != nil {
		return err
	}
	proc, err := startProcess(command{
		name: "postgres", path: filepath.Join(p.bin, "postgres"), args: p.serverArgs(), dir: p.dir,
		logFile: logFile, who: p.who, deathSignal: syscall.SIGINT,
	})
	if err != nil {
		return err
	}
	p.process = proc
	err = proc.waitReady(ctx, readyInterval, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, p.dsn(superuser))
		if err != nil {
			return err
		}

		return conn.Close(ctx)
	})
	if err != nil {
		return errors.Join(err, proc.stop(postgresGrace, syscall.SIGQUIT))
	}

	return nil
}

func (p *Postgres) serverArgs() []string {
	settings := map[string]string{
		"listen_addresses": "127.0.0.1", "port": strconv.Itoa(p.port), "unix_socket_directories": "",
		"max_connections": "200", "shared_buffers": "128MB", "max_wal_size": "1GB",
		"log_min_messages": "warning", "logging_collector": "off", "cluster_name": "milepost",
	}
	if p.config.Unsafe {
		settings["fsync"], settings["synchronous_commit"], settings["full_page_writes"] = "off", "off", "off"
	}
	maps.Copy(settings, p.config.Settings)
	args := []string{"-D", p.dataDir()}
	for name, value := range settings {
		args = append(args, "--"+name+"="+value)
	}
	slices.Sort(args[2:])

	return args
}

func (p *Postgres) removeFolder() error {
	if !p.owned {
		return nil
	}
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("remove the database's folder: %w", err)
	}

	return nil
}

// rotate keeps the log of the start before this one, so that what tail shows
// is of this start.
func rotate(logFile string) error {
	if err := os.Rename(logFile, logFile+".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("rotate a log: %w", err)
	}

	return nil
}
