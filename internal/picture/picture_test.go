package picture

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// wellFormed reads a picture as XML and counts its elements.
func wellFormed(t *testing.T, svg []byte) map[string]int {
	t.Helper()
	count := map[string]int{}
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
		if e, ok := tok.(xml.StartElement); ok {
			count[e.Name.Local]++
		}
	}
}

// Shapes and words come out as well-formed SVG, whatever the words are, and without the last bits of their coordinates.
func TestShapes(t *testing.T) {
	s := New(100, 50)
	s.Line([]Point{{0, 1.04}, {2.06, -0.001}}, Style{Stroke: "red", Width: 2, Dash: "3 2", Opacity: .5, Round: true})
	s.Line([]Point{{1, 1}}, Style{Stroke: "red"})
	s.Clip(Point{1, 1}, Point{9, 9}, func() { s.Ellipse(Point{5, 5}, 2, 3, Style{Fill: "blue"}) })
	s.Area([]Point{{0, 0}, {1, 0}, {0, 1}}, Style{Fill: "green"})
	s.Rect(Point{9, 9}, Point{1, 1}, Style{Stroke: "black", Width: 1})
	s.Write(Point{1, 1}, `<a & "b">`, Text{Size: 10, Colour: "black", Bold: true, Turned: true})
	got := wellFormed(t, s.Bytes())
	for element, want := range map[string]int{"svg": 1, "polyline": 1, "ellipse": 1, "polygon": 1, "clipPath": 1, "text": 1} {
		if got[element] != want {
			t.Errorf("%d × %s, want %d", got[element], element, want)
		}
	}
	if !strings.Contains(string(s.Bytes()), `points="0,1 2.1,0"`) {
		t.Errorf("coordinates are not rounded:\n%s", s.Bytes())
	}
}

// A chart shows every number that it is given and leaves out what is none; its axes hold all of them, also where there is one value or none.
func TestChart(t *testing.T) {
	for name, c := range map[string]Chart{
		"linear": {Ticks: []float64{1, 10}, Series: []Series{{Name: "a", X: []float64{1, 10}, Y: []float64{3, math.NaN()}}, {Name: "b", X: []float64{1, 10}, Y: []float64{0, 7}, Dashed: true}}, Goals: []Series{{Name: "goal", X: []float64{1}, Y: []float64{1}}}},
		"log":    {LogY: true, Ticks: []float64{1, 10}, Series: []Series{{Name: "a", X: []float64{1, 10}, Y: []float64{30, 70_000}}, {Name: "b", X: []float64{1}, Y: []float64{0.5}}}},
		"one":    {Ticks: []float64{5}, Series: []Series{{Name: "a", X: []float64{5, 5, 5}, Y: []float64{0, 0, 0}}}},
	} {
		svg := c.SVG()
		if got := wellFormed(t, svg)["ellipse"]; got != 3 {
			t.Errorf("%s: %d points, want 3", name, got)
		}
		if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
			t.Errorf("%s: a place is no number:\n%s", name, svg)
		}
	}
	if p, ticks := (Chart{Series: []Series{{X: []float64{1}, Y: []float64{23}}}}).plane(); p.y1 != 25 || len(ticks) != 6 {
		t.Errorf("the axis of 23 ends at %g with %d ticks, want 25 and 6", p.y1, len(ticks))
	}
	if _, ticks := (Chart{}).plane(); len(ticks) == 0 {
		t.Error("an empty chart has no axis")
	}
}
