package main

import (
	"math"
	"time"

	"milepost/internal/mapmatch"
	"milepost/internal/mapmatch/matchtest"
	"milepost/internal/roadnet"
)

// drive is one vehicle's observations with the route that it drove, and the network that the route is judged on.
type drive struct {
	id    string
	obs   []mapmatch.Observation
	truth []mapmatch.Pair
	net   *yardstick
}

// yardstick measures answers on one network.
type yardstick struct {
	lines   *matchtest.Drawn
	lengths map[mapmatch.Pair]float64
}

func newYardstick(g *roadnet.Graph) *yardstick {
	return &yardstick{lines: matchtest.NewDrawn(g), lengths: matchtest.Lengths(g)}
}

// score judges the lines of an answer.
func (d *drive) score(lines [][]roadnet.Point) matchtest.Score {
	var got []mapmatch.Pair
	for _, l := range lines {
		got = d.net.lines.AppendPairs(got, l)
	}
	return matchtest.RouteMismatch(d.truth, got, d.net.lengths)
}

// thin keeps a drive's observations that are at least a step apart, and the last.
func (d *drive) thin(step time.Duration) drive {
	out := *d
	out.obs = nil
	for i, o := range d.obs {
		if n := len(out.obs); n == 0 || i == len(d.obs)-1 || o.Time.Sub(out.obs[n-1].Time) >= step {
			out.obs = append(out.obs, o)
		}
	}
	return out
}

// batch is the drives of one step between observations.
type batch struct {
	stepS  float64
	label  string // of the step
	drives []drive
}

func (b *batch) points() (n int) {
	for _, d := range b.drives {
		n += len(d.obs)
	}
	return n
}

// set is a map with drives over it.
type set struct {
	name, title string
	about       string // where it comes from, for the page
	mapFile     string
	richer      bool // observations carry accuracy, speed and heading
	batches     []batch
	goals       []goal
}

// goal is what a step has to reach.
type goal struct {
	stepS       float64
	mismatchPct float64
}

// thinned makes a batch for each step.
func thinned(drives []drive, steps ...float64) (out []batch) {
	for _, s := range steps {
		b := batch{stepS: s}
		for i := range drives {
			b.drives = append(b.drives, drives[i].thin(time.Duration(s*float64(time.Second))))
		}
		out = append(out, b)
	}
	return out
}

// bare is an observation without accuracy, speed and heading.
func bare(at time.Time, p roadnet.Point) mapmatch.Observation {
	return mapmatch.Observation{Time: at, Point: p, AccuracyM: math.NaN(), SpeedMPS: math.NaN(), Heading: math.NaN()}
}
