package soak

import (
	"fmt"
	"math"

	"milepost/internal/picture"
)

const (
	panelWidth, panelHeight = 400.0, 150.0
	panelLeft, panelTop     = 62.0, 26.0
	panelColumns            = 2
	headHeight              = 40.0
)

// Plot draws a panel for each series, with a grey line at each fault.
func Plot(title string, minutes []float64, all []Series, faults []float64) []byte {
	rows := (len(all) + panelColumns - 1) / panelColumns
	s := picture.New(panelColumns*panelWidth+20, headHeight+float64(rows)*panelHeight+24)
	s.Write(picture.Point{X: 12, Y: 24}, title, picture.Text{Size: 15, Colour: "#222222", Bold: true})
	for i, l := range all {
		at := picture.Point{X: float64(i%panelColumns) * panelWidth, Y: headHeight + float64(i/panelColumns)*panelHeight}
		panel(s, at, minutes, l, faults, i)
	}
	s.Write(picture.Point{X: panelLeft, Y: headHeight + float64(rows)*panelHeight + 12}, "minutes; grey: a fault", picture.Text{Size: 11, Colour: "#444444"})
	return s.Bytes()
}

func panel(s *picture.SVG, at picture.Point, minutes []float64, l Series, faults []float64, i int) {
	width, height := panelWidth-panelLeft-12, panelHeight-panelTop-24
	end, top := math.Max(minutes[len(minutes)-1], 0.1), ceiling(l.Values)
	place := func(x, y float64) picture.Point {
		return picture.Point{X: at.X + panelLeft + x/end*width, Y: at.Y + panelTop + height - y/top*height}
	}
	for _, f := range faults {
		s.Line([]picture.Point{place(f, 0), place(f, top)}, picture.Style{Stroke: "#cccccc", Width: 1})
	}
	small := picture.Text{Size: 10, Colour: "#444444", Anchor: picture.End}
	for _, y := range []float64{0, top / 2, top} {
		s.Line([]picture.Point{place(0, y), place(end, y)}, picture.Style{Stroke: "#e6e6e6", Width: 1})
		p := place(0, y)
		s.Write(picture.Point{X: p.X - 5, Y: p.Y + 3}, fmt.Sprintf("%.4g", y), small)
	}
	for _, x := range []float64{0, math.Round(end / 2), math.Round(end)} {
		p := place(math.Min(x, end), 0)
		s.Write(picture.Point{X: p.X, Y: p.Y + 13}, fmt.Sprintf("%.0f", x), picture.Text{Size: 10, Colour: "#444444", Anchor: picture.Middle})
	}
	name := l.Name
	if l.Unit != "" {
		name += ", " + l.Unit
	}
	s.Write(picture.Point{X: at.X + panelLeft, Y: at.Y + panelTop - 8}, name, picture.Text{Size: 12, Colour: "#222222", Bold: true})
	var line []picture.Point
	draw := func() {
		s.Line(line, picture.Style{Stroke: picture.Colour(i), Width: 1.5, Round: true})
		line = nil
	}
	for n, v := range l.Values {
		if math.IsNaN(v) {
			draw()
			continue
		}
		line = append(line, place(minutes[n], v))
	}
	draw()
}

// ceiling is a round number above all values.
func ceiling(values []float64) float64 {
	top := 1.0
	for _, v := range values {
		if !math.IsNaN(v) {
			top = math.Max(top, v)
		}
	}
	unit := math.Pow(10, math.Floor(math.Log10(top)))
	for _, m := range []float64{1, 2, 4, 6, 8} {
		if m*unit >= top {
			return m * unit
		}
	}
	return 10 * unit
}
