package picture

import (
	"math"
	"strconv"
)

// Series is one line of a chart. Points whose Y is not a number are left out.
type Series struct {
	Name   string
	X, Y   []float64
	Dashed bool
	Colour string // empty: the next of the chart's
}

// Chart is a line chart. X is spaced by its logarithm, Y too where LogY is set.
type Chart struct {
	Title, X, Y string
	LogY        bool
	Ticks       []float64 // of X
	Series      []Series
	Goals       []Series // drawn as short bars: what was to be reached
}

const (
	chartWidth, chartHeight = 720, 400
	left, right, top, foot  = 70, 210, 40, 50
)

// Colour is the i-th of colours that are told apart, also by those who see few.
func Colour(i int) string {
	c := [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b5b5b", "#8c564b"}
	return c[i%len(c)]
}

// plane maps values to places.
type plane struct {
	x0, x1, y0, y1 float64
	logY           bool
}

func (p plane) at(x, y float64) Point {
	fx := (math.Log(x) - math.Log(p.x0)) / (math.Log(p.x1) - math.Log(p.x0))
	fy := (y - p.y0) / (p.y1 - p.y0)
	if p.logY {
		fy = (math.Log(y) - math.Log(p.y0)) / (math.Log(p.y1) - math.Log(p.y0))
	}
	return Point{left + fx*(chartWidth-left-right), chartHeight - foot - fy*(chartHeight-top-foot)}
}

// SVG draws the chart.
func (c Chart) SVG() []byte {
	s := New(chartWidth, chartHeight)
	p, ticks := c.plane()
	s.Write(Point{left, 22}, c.Title, Text{Size: 15, Colour: "#222222", Bold: true})
	grid := Style{Stroke: "#dddddd", Width: 1}
	small := Text{Size: 12, Colour: "#444444", Anchor: Middle}
	for _, x := range c.Ticks {
		a, b := p.at(x, p.y0), p.at(x, p.y1)
		s.Line([]Point{a, b}, grid)
		s.Write(Point{a.X, a.Y + 17}, label(x), small)
	}
	for _, y := range ticks {
		a, b := p.at(p.x0, y), p.at(p.x1, y)
		s.Line([]Point{a, b}, grid)
		s.Write(Point{a.X - 6, a.Y + 4}, label(y), Text{Size: 12, Colour: "#444444", Anchor: End})
	}
	s.Write(Point{(left + chartWidth - right) / 2, chartHeight - 12}, c.X, small)
	s.Write(Point{18, (top + chartHeight - foot) / 2}, c.Y, Text{Size: 12, Colour: "#444444", Anchor: Middle, Turned: true})
	for _, g := range c.Goals {
		for i := range g.X {
			at := p.at(g.X[i], g.Y[i])
			s.Line([]Point{{at.X - 9, at.Y}, {at.X + 9, at.Y}}, Style{Stroke: "#222222", Width: 3})
		}
	}
	row := float64(top) + 8
	for i, l := range c.Series {
		row = c.line(s, p, l, i, row)
	}
	if len(c.Goals) > 0 {
		s.Line([]Point{{chartWidth - right + 16, row}, {chartWidth - right + 38, row}}, Style{Stroke: "#222222", Width: 3})
		s.Write(Point{chartWidth - right + 44, row + 4}, c.Goals[0].Name, Text{Size: 12, Colour: "#222222"})
	}
	return s.Bytes()
}

func (c Chart) line(s *SVG, p plane, l Series, i int, row float64) float64 {
	colour := l.Colour
	if colour == "" {
		colour = Colour(i)
	}
	style := Style{Stroke: colour, Width: 2, Round: true}
	if l.Dashed {
		style.Dash = "5 4"
	}
	var line []Point
	for k := range l.X {
		if math.IsNaN(l.Y[k]) {
			continue
		}
		line = append(line, p.at(l.X[k], max(l.Y[k], p.y0)))
	}
	s.Line(line, style)
	for _, at := range line {
		s.Ellipse(at, 3.5, 3.5, Style{Fill: colour})
	}
	s.Line([]Point{{chartWidth - right + 16, row}, {chartWidth - right + 38, row}}, style)
	s.Write(Point{chartWidth - right + 44, row + 4}, l.Name, Text{Size: 12, Colour: "#222222"})
	return row + 19
}

// plane chooses the range of both axes, and the ticks of Y.
func (c Chart) plane() (plane, []float64) {
	p := plane{logY: c.LogY, x0: math.Inf(1), x1: math.Inf(-1)}
	low, high := math.Inf(1), math.Inf(-1)
	for _, x := range c.Ticks {
		p.x0, p.x1 = min(p.x0, x), max(p.x1, x)
	}
	for _, l := range append(append([]Series(nil), c.Series...), c.Goals...) {
		for i, y := range l.Y {
			p.x0, p.x1 = min(p.x0, l.X[i]), max(p.x1, l.X[i])
			if !math.IsNaN(y) && (y > 0 || !c.LogY) {
				low, high = min(low, y), max(high, y)
			}
		}
	}
	if p.x1 <= p.x0 {
		p.x0, p.x1 = p.x0/2, p.x0*2
	}
	p.x0, p.x1 = p.x0/1.15, p.x1*1.15
	if math.IsInf(low, 0) {
		low, high = 1, 10
	}
	if c.LogY {
		return c.logarithmic(p, low, high)
	}
	step := nice(high / 5)
	p.y0, p.y1 = 0, step*math.Ceil(high/step)
	if p.y1 == 0 {
		p.y1, step = 1, 0.2
	}
	var ticks []float64
	for i := 0; float64(i)*step <= p.y1*1.0001; i++ {
		ticks = append(ticks, float64(i)*step)
	}
	return p, ticks
}

func (c Chart) logarithmic(p plane, low, high float64) (plane, []float64) {
	p.y0, p.y1 = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	if p.y1 <= p.y0 {
		p.y1 = 10 * p.y0
	}
	var ticks []float64
	for y := p.y0; y <= p.y1*1.0001; y *= 10 {
		ticks = append(ticks, y)
	}
	return p, ticks
}

// nice rounds a step up to 1, 2 or 5 times a power of ten.
func nice(step float64) float64 {
	if step <= 0 {
		return 0.2
	}
	unit := math.Pow(10, math.Floor(math.Log10(step)))
	for _, m := range []float64{1, 2, 5} {
		if step <= m*unit {
			return m * unit
		}
	}
	return 10 * unit
}

func label(v float64) string {
	switch {
	case v >= 1_000_000:
		return strconv.FormatFloat(v/1_000_000, 'g', 3, 64) + "M"
	case v >= 1000:
		return strconv.FormatFloat(v/1000, 'g', 3, 64) + "k"
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}
