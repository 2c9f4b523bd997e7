package offline

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"milepost/internal/fleet"
	"milepost/internal/stream"
)

// gpxTrack is a vehicle's driven path: a segment of the track for each segment of the trip, so that no line crosses a break (M18).
type gpxTrack struct {
	XMLName  xml.Name     `xml:"trk"`
	Name     string       `xml:"name"`
	Desc     string       `xml:"desc"`
	Segments []gpxSegment `xml:"trkseg"`
}

type gpxSegment struct {
	Points []gpxPoint `xml:"trkpt"`
}

type gpxPoint struct {
	Lat  gpxDegrees `xml:"lat,attr"`
	Lon  gpxDegrees `xml:"lon,attr"`
	Time string     `xml:"time,omitempty"`
}

type gpxDegrees float64

// MarshalXMLAttr writes the seven decimals that a place has.
func (d gpxDegrees) MarshalXMLAttr(name xml.Name) (xml.Attr, error) {
	return xml.Attr{Name: name, Value: fmt.Sprintf("%.7f", float64(d))}, nil
}

const (
	gpxHead = xml.Header + `<gpx version="1.1" creator="milepost" xmlns="http://www.topografix.com/GPX/1/1">` + "\n"
	gpxTail = "</gpx>\n"
)

// NewGPX makes a sink of a GPX file: a track a vehicle, a track segment a segment, with the driven path and the times along it. settle is
// the run's. It holds all trips until the input ends.
func NewGPX(w io.Writer, settle func(stream.Key) (*fleet.Final, error)) Sink {
	started := false
	begin := func() error {
		if started {
			return nil
		}
		started = true
		if _, err := io.WriteString(w, gpxHead); err != nil {
			return fmt.Errorf("write the head: %w", err)
		}
		return nil
	}
	emit := func(t *Trip) error {
		if err := begin(); err != nil {
			return err
		}
		b, err := xml.MarshalIndent(trackOf(t), "", " ")
		if err != nil {
			return fmt.Errorf("encode a track: %w", err)
		}
		if _, err := w.Write(append(b, '\n')); err != nil {
			return fmt.Errorf("write a track: %w", err)
		}
		return nil
	}
	return newTrips(settle, emit, func() error {
		if err := begin(); err != nil {
			return err
		}
		if _, err := io.WriteString(w, gpxTail); err != nil {
			return fmt.Errorf("write the end: %w", err)
		}
		return nil
	})
}

func trackOf(t *Trip) *gpxTrack {
	track := &gpxTrack{Name: t.Vehicle, Desc: describe(t)}
	for i := range t.Segments {
		s := &t.Segments[i]
		points := timed(s.Path)
		if len(points) == 0 { // nothing was driven: where it stood
			for _, o := range t.Of(s.Number) {
				if o.Place != nil {
					points = append(points, point([2]float64{o.Place.Lon, o.Place.Lat}, o.Time))
					break
				}
			}
		}
		if len(points) > 0 {
			track.Segments = append(track.Segments, gpxSegment{points})
		}
	}
	return track
}

// describe says what became of the observations (M17).
func describe(t *Trip) string {
	counts := map[string]int{}
	for i := range t.Observations {
		counts[t.Observations[i].Disposition]++
	}
	var parts []string
	for _, d := range fleet.Dispositions() {
		if n := counts[d]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", d, n))
		}
	}
	return fmt.Sprintf("%d observations: %s", len(t.Observations), strings.Join(parts, ", "))
}

// timed gives a path's points with the times at which they were passed: those of the spans, and between them by length.
func timed(path []fleet.Span) []gpxPoint {
	var out []gpxPoint
	var last [2]float64
	for i := range path {
		s := &path[i]
		whole := 0.0
		for k := 1; k < len(s.Geometry); k++ {
			whole += Metres(s.Geometry[k-1], s.Geometry[k])
		}
		took, done := s.End.Sub(s.Start), 0.0
		for k, p := range s.Geometry {
			if k > 0 {
				done += Metres(s.Geometry[k-1], p)
			}
			at := s.Start
			if whole > 0 {
				at = at.Add(time.Duration(float64(took) * min(done/whole, 1)))
			}
			if len(out) > 0 && p == last {
				continue
			}
			out, last = append(out, point(p, at)), p
		}
	}
	return slices.Clip(out)
}

func point(p [2]float64, at time.Time) gpxPoint {
	return gpxPoint{Lat: gpxDegrees(p[1]), Lon: gpxDegrees(p[0]), Time: at.UTC().Truncate(time.Millisecond).Format("2006-01-02T15:04:05.999Z")}
}
