package offline

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"milepost/internal/fleet"
	"milepost/internal/stream"
)

// geoJSON writes a FeatureCollection with one line a segment and one point an observation: no line ever crosses a break (M18), and every
// observation has its disposition (M17). A point is the snapped position, where there is one, else the observed one.
type geoJSON struct {
	waiting
	w        *bufio.Writer
	vehicles map[string]*feature
	features int
	buf      []byte
}

// feature is the segment that a vehicle is in.
type feature struct {
	segment      int64
	reset        string
	start, end   time.Time
	observations int
	dispositions map[string]int
	line         [][2]float64
}

// NewGeoJSON makes a sink of a GeoJSON FeatureCollection. settle is the run's.
func NewGeoJSON(w io.Writer, settle func(stream.Key) (*fleet.Final, error)) Sink {
	g := &geoJSON{w: bufio.NewWriterSize(w, 64<<10), vehicles: map[string]*feature{}}
	g.waiting = newWaiting(settle, g.point)
	return g
}

// Observed takes a fix's event.
func (g *geoJSON) Observed(seq int64, e *fleet.Event) error {
	f := g.vehicles[e.Vehicle]
	if f == nil || e.Reset != nil {
		if f != nil {
			f.add(e.Closed)
			if err := g.line(e.Vehicle, f); err != nil {
				return err
			}
		}
		f = &feature{segment: e.Segment, start: e.Time, dispositions: map[string]int{}}
		if e.Reset != nil {
			f.reset = e.Reset.Reason
		}
		g.vehicles[e.Vehicle] = f
	}
	f.add(e.Final)
	f.end = e.Time
	f.observations++
	f.dispositions[e.Disposition]++
	return g.observed(seq, e)
}

// Ended writes a vehicle's last segment.
func (g *geoJSON) Ended(e *fleet.Event) error {
	f := g.vehicles[e.Vehicle]
	if f == nil {
		return nil
	}
	f.add(e.Final)
	delete(g.vehicles, e.Vehicle)
	return errors.Join(g.ended(e), g.line(e.Vehicle, f))
}

func (f *feature) add(final *fleet.Final) {
	if final == nil {
		return
	}
	for i := range final.Path {
		f.line = appendLine(f.line, final.Path[i].Geometry)
	}
}

func (g *geoJSON) line(vehicle string, f *feature) error {
	// A map's keys are sorted by the encoder, so that equal input gives equal bytes.
	properties, err := json.Marshal(map[string]any{
		"vehicle": vehicle, "segment": f.segment, "reset": f.reset, "start": f.start, "end": f.end,
		"observations": f.observations, "dispositions": f.dispositions,
	})
	if err != nil {
		return fmt.Errorf("encode a feature: %w", err)
	}
	b := g.buf[:0]
	b = append(b, g.lead()...)
	b = append(b, `{"type":"Feature","properties":`...)
	b = append(append(b, properties...), `,"geometry":`...)
	switch len(f.line) {
	case 0, 1: // no line: nothing was driven
		b = append(b, "null"...)
	default:
		b = append(b, `{"type":"LineString","coordinates":[`...)
		for i, p := range f.line {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendFloat(append(b, '['), p[0], 'f', -1, 64)
			b = append(strconv.AppendFloat(append(b, ','), p[1], 'f', -1, 64), ']')
		}
		b = append(b, "]}"...)
	}
	b = append(b, '}')
	g.buf = b
	if _, err := g.w.Write(g.buf); err != nil {
		return fmt.Errorf("write a feature: %w", err)
	}
	return nil
}

// point writes an observation.
func (g *geoJSON) point(r *row) error {
	lon, lat := r.lon, r.lat
	properties := map[string]any{"vehicle": r.vehicle, "seq": r.seq, "time": r.time, "disposition": r.disposition, "segment": r.segment}
	if p := r.place; p != nil {
		lon, lat = p.Lon, p.Lat
		properties["way"], properties["heading_deg"], properties["confidence"] = p.Way, p.HeadingDeg, p.Confidence
		properties["observed"] = [2]float64{r.lon, r.lat}
	}
	b, err := json.Marshal(map[string]any{
		"type": "Feature", "properties": properties,
		"geometry": map[string]any{"type": "Point", "coordinates": [2]float64{lon, lat}},
	})
	if err != nil {
		return fmt.Errorf("encode a point: %w", err)
	}
	if _, err := g.w.WriteString(g.lead() + string(b)); err != nil {
		return fmt.Errorf("write a point: %w", err)
	}
	return nil
}

// lead is what goes before the next feature.
func (g *geoJSON) lead() string {
	g.features++
	if g.features == 1 {
		return "{\"type\":\"FeatureCollection\",\"features\":[\n"
	}
	return ",\n"
}

// Close writes the end.
func (g *geoJSON) Close() error {
	end := "\n]}\n"
	if g.features == 0 {
		end = g.lead() + "]}\n"
	}
	if _, err := g.w.WriteString(end); err != nil {
		return fmt.Errorf("write the end: %w", err)
	}
	if err := g.w.Flush(); err != nil {
		return fmt.Errorf("write features: %w", err)
	}
	return nil
}
