package soak

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// The judge of the soak test is worth something: a slow leak is seen under noise, spikes and gaps, and those alone are no leak.
func TestTrendIsSeen(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var minutes, level, leak, warming, unread []float64
	for i := range 360 {
		at := float64(i) / 12
		noise := 10 * rng.Float64()
		if i%60 < 3 {
			noise += 80 // a fault's spike
		}
		minutes = append(minutes, at)
		level, leak = append(level, 100+noise), append(leak, 100+noise+at)
		warming = append(warming, 100+noise+50*min(at, 5))
		unread = append(unread, math.NaN())
	}
	for _, c := range []struct {
		name   string
		values []float64
		flat   bool
	}{{"level", level, true}, {"leak", leak, false}, {"warms up", warming, true}, {"never read", unread, false}} {
		s := Series{Name: c.name, Values: c.values, Slack: 5}
		if got := s.Judge(minutes, 6); got.Flat != c.flat {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// A picture has a panel for each series and survives what could not be read.
func TestPlot(t *testing.T) {
	svg := string(Plot("soak", []float64{0, 1, 2}, []Series{
		{Name: "memory", Unit: "MiB", Values: []float64{1, math.NaN(), 3}}, {Name: "handles", Values: []float64{0, 0, 0}},
	}, []float64{1}))
	for _, want := range []string{"memory", "handles", "MiB", "<svg"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Error("the picture has numbers that are none")
	}
}
