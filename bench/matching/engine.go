package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
)

// engine is a program that matches, with one map.
type engine interface {
	// match answers for one drive under a setting.
	match(ctx context.Context, setting string, obs []mapmatch.Observation) (answer, error)
	process() *child
}

// answer is what an engine said about a drive.
type answer struct {
	lines [][]roadnet.Point // the ways that it drew, each connected
	lag   lag               // ours alone
}

// contender is an engine under one of its settings.
type contender struct {
	engine, setting string
	label           string
	about           string // the setting, for the page
	once            bool   // so slow that one round has to do
}

func (c contender) name() string { return c.engine + "/" + c.setting }

// contenders are what takes part, ours first.
func contenders(richer bool) []contender {
	list := []contender{
		{engine: "ours", setting: "default", label: "ours", about: "online, default settings"},
		{engine: "valhalla", setting: "default", label: "Valhalla", about: "`trace_attributes`, `map_snap`, costing `auto`, default options"},
		{engine: "valhalla", setting: valhallaTuned, label: "Valhalla, tuned", about: "`gps_accuracy` 8 m, `search_radius` 50 m, `turn_penalty_factor` 200"},
		{engine: "osrm", setting: "default", label: "OSRM", about: "`match`, profile `car`, MLD, default options (5 m radius, traces split at gaps)"},
		{engine: "osrm", setting: osrmTuned, label: "OSRM, tuned", about: "`radiuses` 10 m, `tidy`, `gaps=ignore`"},
		{engine: "graphhopper", setting: "10", label: "GraphHopper", about: "profile `car`, default sigma 10 m"},
		{engine: "graphhopper", setting: "40", label: "GraphHopper, tuned", about: "sigma 40 m; one round, since it is slow", once: true},
	}
	if richer {
		list = append(list[:1:1], append([]contender{{engine: "ours", setting: "bare", label: "ours, positions alone", about: "online, without the accuracy, speed and heading that peers do not take"}}, list[1:]...)...)
	}
	return list
}

// child is an engine's process.
type child struct {
	cmd     *exec.Cmd
	done    chan struct{} // closed when it has ended
	scratch string        // a folder that goes with it
}

// launch starts a program; what it says goes to a log.
func launch(cmd *exec.Cmd, log string) (*child, error) {
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	cmd.Stderr = f
	if cmd.Stdout == nil {
		cmd.Stdout = f
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its end is what counts
		close(c.done)
	}()
	return c, nil
}

// talker is a process that is spoken to over its standard input and output.
type talker struct {
	*child
	in  io.Writer
	out *bufio.Reader
}

// launchTalker starts a program that answers; what it complains of goes to a log.
func launchTalker(cmd *exec.Cmd, log string) (*talker, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c, err := launch(cmd, log)
	if err != nil {
		return nil, err
	}
	return &talker{child: c, in: in, out: bufio.NewReaderSize(out, 1<<20)}, nil
}

func (c *child) stop() {
	_ = c.cmd.Process.Kill() // it may have ended already
	<-c.done
	if c.scratch != "" {
		_ = os.RemoveAll(c.scratch)
	}
}

// cpu is the processor time that the process has taken, all threads that live.
func (c *child) cpu() time.Duration {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", c.cmd.Process.Pid))
	var sum int64
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // a thread that has just ended
		}
		ns, _, _ := strings.Cut(string(b), " ")
		n, _ := strconv.ParseInt(ns, 10, 64)
		sum += n
	}
	return time.Duration(sum)
}

// listening waits until a process accepts connections, and ends it where it does not.
func (c *child) listening(ctx context.Context, addr string) (err error) {
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	var d net.Dialer
	for range 600 {
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-c.done:
			return fmt.Errorf("%s ended before it listened", filepath.Base(c.cmd.Path))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not listen on %s", filepath.Base(c.cmd.Path), addr)
}

// freePort asks the system for a port that nobody uses.
func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// ours is this project's matcher, in a process of its own.
type ours struct {
	*talker
	ask     *json.Encoder // to in
	tellLag bool
}

func startOurs(ctx context.Context, mapFile, work string) (*ours, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log := filepath.Join(work, "ours.log")
	t, err := launchTalker(exec.CommandContext(ctx, self, "serve", mapFile), log)
	if err != nil {
		return nil, err
	}
	o := &ours{talker: t, ask: json.NewEncoder(t.in)}
	if _, err := o.out.ReadString('\n'); err != nil { // ready
		return nil, fmt.Errorf("our own server did not start, see %s: %w", log, err)
	}
	return o, nil
}

func (o *ours) process() *child { return o.child }

func (o *ours) match(_ context.Context, setting string, obs []mapmatch.Observation) (answer, error) {
	req := request{Bare: setting == "bare", Lag: o.tellLag}
	for _, x := range obs {
		p := point{Lon: x.Point.Lon, Lat: x.Point.Lat, TimeUS: x.Time.UnixMicro()}
		if x.AccuracyM == x.AccuracyM {
			p.AccuracyM, p.SpeedMPS, p.Heading = &x.AccuracyM, &x.SpeedMPS, &x.Heading
		}
		req.Points = append(req.Points, p)
	}
	if err := o.ask.Encode(req); err != nil {
		return answer{}, err
	}
	line, err := o.out.ReadBytes('\n')
	if err != nil {
		return answer{}, err
	}
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		return answer{}, err
	}
	a := answer{lag: r.Lag}
	for _, l := range r.Lines {
		var line []roadnet.Point
		for _, p := range l {
			line = append(line, roadnet.Point{Lon: p[0], Lat: p[1]})
		}
		a.lines = append(a.lines, line)
	}
	return a, nil
}
