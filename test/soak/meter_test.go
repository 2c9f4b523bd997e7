//go:build soak

package soak_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"milepost/test/soak"
	"milepost/test/stand"
)

// meter samples one worker, the database and the ledger.
type meter struct {
	job     *stand.Job
	pid     int
	metrics string
	client  *http.Client
	minutes []float64
	series  []*soak.Series
	by      map[string]*soak.Series
}

func newMeter(j *stand.Job, p *stand.Process) *meter {
	m := &meter{
		job: j, pid: p.PID(), metrics: "http://" + address(p) + "/metrics", client: &http.Client{Timeout: 2 * time.Second},
		by: map[string]*soak.Series{},
	}
	for _, s := range []soak.Series{
		{Name: "memory of a worker (RSS)", Unit: "MiB", Slack: 8},
		{Name: "heap of a worker", Unit: "MiB", Slack: 6},
		{Name: "goroutines of a worker", Slack: 10},
		{Name: "file handles of a worker", Slack: 8},
		{Name: "connections to Postgres", Slack: 4},
		{Name: "dead tuples", Slack: float64(*keys)},
		// After a kill Postgres has forgotten where there is room and what is dead, and the table grows by what was busy.
		{Name: "size of checkpoint", Unit: "MiB", Slack: 4},
		{Name: "size of partition_frontier", Unit: "MiB", Slack: 0.5},
		{Name: "size of the other tables", Unit: "MiB", Slack: 0.5},
		// It is cut twice a minute, to a floor that is half a minute old: what a minute writes comes and goes.
		{Name: "records of the ledger", Slack: 60 * float64(*rate)},
		{Name: "behind the log's end", Unit: "records", Level: true},
		{Name: "load average of the machine", Level: true},
	} {
		m.series = append(m.series, &s)
		m.by[s.Name] = &s
	}
	return m
}

// sample reads everything once; what cannot be read is NaN.
func (m *meter) sample(ctx context.Context, minute float64) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	got := map[string]float64{}
	m.process(got)
	m.scrape(ctx, got)
	m.tables(ctx, got)
	m.logs(ctx, got)
	m.minutes = append(m.minutes, minute)
	for _, s := range m.series {
		v, ok := got[s.Name]
		if !ok {
			v = math.NaN()
		}
		s.Values = append(s.Values, v)
	}
}

func (m *meter) process(got map[string]float64) {
	if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid)); err == nil {
		for line := range strings.Lines(string(status)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
				got["memory of a worker (RSS)"] = number(f[1]) / 1024
			}
		}
	}
	if handles, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", m.pid)); err == nil {
		got["file handles of a worker"] = float64(len(handles))
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		got["load average of the machine"] = number(strings.Fields(string(load))[0])
	}
}

func (m *meter) scrape(ctx context.Context, got map[string]float64) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.metrics, nil)
	if err != nil {
		return
	}
	resp, err := m.client.Do(req)
	if err != nil {
		return
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		switch f := strings.Fields(lines.Text()); {
		case len(f) != 2:
		case f[0] == "go_goroutines":
			got["goroutines of a worker"] = number(f[1])
		case f[0] == "go_memstats_heap_inuse_bytes":
			got["heap of a worker"] = number(f[1]) / (1 << 20)
		}
	}
}

func (m *meter) tables(ctx context.Context, got map[string]float64) {
	var connections, dead, checkpoint, frontier, rest float64
	err := m.job.DB.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'milepost'),
		       (SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables),
		       pg_total_relation_size('checkpoint') / 1048576.0,
		       pg_total_relation_size('partition_frontier') / 1048576.0,
		       (SELECT coalesce(sum(pg_total_relation_size(relid)), 0) / 1048576.0 FROM pg_stat_user_tables
		        WHERE relname NOT IN ('checkpoint', 'partition_frontier'))`).Scan(&connections, &dead, &checkpoint, &frontier, &rest)
	if err != nil {
		return
	}
	got["connections to Postgres"], got["dead tuples"] = connections, dead
	got["size of checkpoint"], got["size of partition_frontier"], got["size of the other tables"] = checkpoint, frontier, rest
}

func (m *meter) logs(ctx context.Context, got map[string]float64) {
	span := func(list func(context.Context, ...string) (kadm.ListedOffsets, error), topic string) (float64, bool) {
		listed, err := list(ctx, topic)
		if err != nil || listed.Error() != nil {
			return 0, false
		}
		sum := int64(0)
		listed.Each(func(o kadm.ListedOffset) { sum += o.Offset })
		return float64(sum), true
	}
	ledger := m.job.Prefix + ".ledger"
	start, ok := span(m.job.Admin.ListStartOffsets, ledger)
	end, ok2 := span(m.job.Admin.ListEndOffsets, ledger)
	if ok && ok2 {
		got["records of the ledger"] = end - start
	}
	raw, ok := span(m.job.Admin.ListEndOffsets, m.job.Raw)
	frontiers, err := m.job.Frontiers(ctx)
	if ok && err == nil {
		for _, next := range frontiers {
			raw -= float64(next)
		}
		got["behind the log's end"] = max(raw, 0)
	}
}

// csv is the samples, a row each.
func (m *meter) csv() []byte {
	var b bytes.Buffer
	b.WriteString("minute")
	for _, s := range m.series {
		name := s.Name
		if s.Unit != "" {
			name += " (" + s.Unit + ")"
		}
		b.WriteString("," + name)
	}
	for i, at := range m.minutes {
		fmt.Fprintf(&b, "\n%.2f", at)
		for _, s := range m.series {
			b.WriteByte(',')
			if v := s.Values[i]; !math.IsNaN(v) {
				b.WriteString(strconv.FormatFloat(v, 'f', 2, 64))
			}
		}
	}
	b.WriteByte('\n')
	return b.Bytes()
}

func number(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}
