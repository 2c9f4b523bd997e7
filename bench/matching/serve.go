package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
)

// request is a drive for our server: a line of JSON.
type request struct {
	Bare   bool    `json:"bare"` // leave accuracy, speed and heading out
	Lag    bool    `json:"lag"`  // say how long answers took to become final
	Points []point `json:"points"`
}

type point struct {
	Lon       float64  `json:"lon"`
	Lat       float64  `json:"lat"`
	TimeUS    int64    `json:"time_us"`
	AccuracyM *float64 `json:"accuracy_m,omitempty"`
	SpeedMPS  *float64 `json:"speed_mps,omitempty"`
	Heading   *float64 `json:"heading,omitempty"`
}

// reply is the answer: a line of JSON.
type reply struct {
	Lines [][][2]float64 `json:"lines"`
	Lag   lag            `json:"lag,omitzero"`
}

// lag says how long answers took to become final, and whether they were what was said first.
type lag struct {
	Points  []int     `json:"points"`  // observations that had to come after it, of each final one
	Seconds []float64 `json:"seconds"` // of event time, likewise
	Moved   int       `json:"moved"`   // final places more than a metre from the first provisional one
	Breaks  int       `json:"breaks"`
	Left    int       `json:"left"` // observations without a place of their own: outliers, and those off the road
}

func (l *lag) add(o lag) {
	l.Points = append(l.Points, o.Points...)
	l.Seconds = append(l.Seconds, o.Seconds...)
	l.Moved += o.Moved
	l.Breaks += o.Breaks
	l.Left += o.Left
}

// serve matches the drives on in over a map and writes their answers to out, until in ends.
func serve(ctx context.Context, mapFile string, in io.Reader, out io.Writer) error {
	g, err := importMap(ctx, mapFile)
	if err != nil {
		return err
	}
	m, err := mapmatch.New(g, mapmatch.DefaultConfig())
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(out, 1<<20)
	if _, err := fmt.Fprintln(w, "ready"); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	lines := json.NewDecoder(bufio.NewReaderSize(in, 1<<20))
	for {
		var req request
		if err := lines.Decode(&req); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r, err := matchDrive(m, req)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(w).Encode(r); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

// matchDrive pushes a drive through the matcher, one observation at a time, as a stream would come.
func matchDrive(m *mapmatch.Matcher, req request) (reply, error) {
	var state []byte
	var track mapmatch.Track
	var out reply
	first := make([]roadnet.Point, 0, len(req.Points))
	placed := 0
	apply := func(r mapmatch.Result, now time.Time, newest int64) {
		track.Apply(r)
		if !req.Lag {
			return
		}
		for _, p := range r.FinalPoints {
			if p.Disposition == mapmatch.Outlier {
				out.Lag.Left++
			}
			placed++
			out.Lag.Points = append(out.Lag.Points, int(newest-p.Seq))
			out.Lag.Seconds = append(out.Lag.Seconds, now.Sub(p.Time).Seconds())
			if p.Seq < int64(len(first)) && roadnet.Distance(first[p.Seq], p.Snapped) > 1 {
				out.Lag.Moved++
			}
		}
		if r.Break != mapmatch.NoBreak {
			out.Lag.Breaks++
		}
	}
	var now time.Time
	for _, p := range req.Points {
		o := bare(time.UnixMicro(p.TimeUS), roadnet.Point{Lon: p.Lon, Lat: p.Lat})
		if p.AccuracyM != nil && !req.Bare {
			o.AccuracyM, o.SpeedMPS, o.Heading = *p.AccuracyM, *p.SpeedMPS, *p.Heading
		}
		next, r, err := m.Push(state, o)
		if err != nil {
			return reply{}, err
		}
		state = next
		if r.Seq < 0 {
			continue // not after the one before
		}
		said := roadnet.Point{Lon: math.NaN(), Lat: math.NaN()}
		if r.Provisional != nil {
			said = r.Provisional.Snapped
		}
		first = append(first, said)
		now = o.Time
		apply(r, now, r.Seq)
	}
	r, err := m.Flush(state)
	if err != nil {
		return reply{}, err
	}
	apply(r, now, r.Seq)
	if req.Lag {
		out.Lag.Left += len(first) - placed
	}
	for _, path := range track.Paths() {
		var line [][2]float64
		for _, s := range path {
			for _, q := range s.Geometry {
				line = append(line, [2]float64{q.Lon, q.Lat})
			}
		}
		out.Lines = append(out.Lines, line)
	}
	return out, nil
}

// serveOn serves this process's own streams.
func serveOn(ctx context.Context, mapFile string) error {
	return serve(ctx, mapFile, os.Stdin, os.Stdout)
}
