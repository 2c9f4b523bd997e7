package mapmatch

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"milepost/internal/picture"
	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

// The picture of a drive has two panels, what came in and what was made of it, beside each other or one above the other, a title
// above and the counts below.
const (
	pictureWidth = 720.0
	margin       = 12.0
	titleHeight  = 34.0
	labelHeight  = 18.0
	rowHeight    = 17.0
	noAccuracy   = 8.0 // metres: what is believed of an observation that gives none
)

// view is the piece of the map that is shown, in metres, with the scales of both axes: flat maps are stretched upwards.
type view struct {
	x0, y0, x1, y1 float64
	kx, ky         float64 // pixels a metre
	beside         bool    // the panels, not one above the other
	width, height  float64 // of a panel
}

func (v view) holds(x, y float64) bool { return x >= v.x0 && x <= v.x1 && y >= v.y0 && y <= v.y1 }

// span of numbers.
type extent struct{ lo, hi float64 }

func newExtent() extent { return extent{math.Inf(1), math.Inf(-1)} }

func (e *extent) add(v float64) { e.lo, e.hi = min(e.lo, v), max(e.hi, v) }

func (e extent) size() float64 { return e.hi - e.lo }

func (e extent) apart(v float64) float64 { return max(e.lo-v, v-e.hi, 0) }

// look chooses the view: all observations but those that are far from the others and from every road, and the junctions near them.
func (d *drive) look() view {
	x, y := newExtent(), newExtent()
	for _, o := range d.shown() {
		px, py := d.m.XY(o.Point)
		if r := d.results[o.index]; r.Disposition != Outlier && !d.farFromRoads(px, py) {
			x.add(px)
			y.add(py)
		}
	}
	if x.size() < 0 { // nothing was near anything: the roads alone
		for _, r := range d.m.Roads() {
			for _, n := range r.Nodes {
				if px, py, _, ok := d.m.Place(n); ok {
					x.add(px)
					y.add(py)
				}
			}
		}
	}
	reach := max(0.35*max(x.size(), y.size()), 80)
	wide, high := x, y
	for _, o := range d.shown() {
		if px, py := d.m.XY(o.Point); x.apart(px) < 2*reach && y.apart(py) < 2*reach {
			wide.add(px)
			high.add(py)
		}
	}
	for _, r := range d.m.Roads() {
		for _, n := range r.Nodes {
			if px, py, _, ok := d.m.Place(n); ok && x.apart(px) <= reach && y.apart(py) <= reach {
				wide.add(px)
				high.add(py)
			}
		}
	}
	return view{x0: wide.lo - 15, x1: wide.hi + 15, y0: high.lo - 10, y1: high.hi + 10}.scaled()
}

func (d *drive) farFromRoads(x, y float64) bool {
	const far = 600 // metres
	for _, r := range d.m.Roads() {
		box := [2]extent{newExtent(), newExtent()}
		for _, n := range r.Nodes {
			if px, py, _, ok := d.m.Place(n); ok {
				box[0].add(px)
				box[1].add(py)
			}
		}
		if box[0].apart(x) < far && box[1].apart(y) < far {
			return false
		}
	}
	return true
}

func (v view) scaled() view {
	const least, most, border = 80.0, 300.0, 28.0 // pixels: of height, and around what is shown
	w, h := v.x1-v.x0, v.y1-v.y0
	v.beside = h/w > 0.42
	v.width = pictureWidth - 2*margin
	if v.beside {
		v.width = (pictureWidth - 3*margin) / 2
	}
	v.kx = min((v.width-2*border)/w, most/h)
	v.ky = v.kx
	if h*v.ky < least {
		v.ky = min(least/h, 40*v.kx)
	}
	v.height = h*v.ky + 2*border
	v.y0, v.y1 = v.y0-border/v.ky, v.y1+border/v.ky
	more := (v.width/v.kx - w) / 2
	v.x0, v.x1 = v.x0-more, v.x1+more
	return v
}

// panel draws a piece of the map at a place of the picture.
type panel struct {
	*picture.SVG
	d      *drive
	v      view
	corner picture.Point // upper left
}

func (p panel) at(x, y float64) picture.Point {
	return picture.Point{X: p.corner.X + (x-p.v.x0)*p.v.kx, Y: p.corner.Y + (p.v.y1-y)*p.v.ky}
}

func (p panel) place(q roadnet.Point) picture.Point {
	x, y := p.d.m.XY(q)
	return p.at(x, y)
}

func (p panel) frame(label string, f func()) {
	far := picture.Point{X: p.corner.X + p.v.width, Y: p.corner.Y + p.v.height}
	p.Write(picture.Point{X: p.corner.X, Y: p.corner.Y - 5}, label, picture.Text{Size: 12, Colour: "#555555"})
	p.Rect(p.corner, far, picture.Style{Fill: "#f7f6f2"})
	p.Clip(p.corner, far, func() {
		p.roads()
		f()
	})
	p.Rect(p.corner, far, picture.Style{Stroke: "#bbbbbb", Width: 1})
}

// roads draws the map: roads with what sets them apart, one-way arrows, junctions, rules and barriers.
func (p panel) roads() {
	for _, r := range p.d.m.Roads() {
		var line []picture.Point
		for _, n := range r.Nodes {
			if x, y, _, ok := p.d.m.Place(n); ok {
				line = append(line, p.at(x, y))
			}
		}
		casing, fill := roadStyle(r)
		if casing.Stroke != "" {
			p.Line(line, casing)
		}
		p.Line(line, fill)
		if r.Oneway {
			p.chevrons(line, "#8a8a8a", 46)
		}
		if words := roadWords(r); words != "" {
			p.alongside(line, words)
		}
	}
	named := map[string]bool{}
	var names []picture.Point
	for _, r := range p.d.m.Roads() {
		for _, n := range r.Nodes {
			x, y, tags, ok := p.d.m.Place(n)
			if named[n] || !ok || !p.v.holds(x, y) {
				continue
			}
			named[n] = true
			at := p.at(x, y)
			if len(n) <= 2 {
				p.Ellipse(at, 1.8, 1.8, picture.Style{Fill: "#777777"})
			}
			if len(n) <= 2 && !slices.ContainsFunc(names, func(q picture.Point) bool { return math.Hypot(q.X-at.X, q.Y-at.Y) < 20 }) {
				names = append(names, at)
				p.Write(picture.Point{X: at.X + 4, Y: at.Y - 6}, n, picture.Text{Size: 10, Colour: "#777777"})
			}
			if b := tags.Get("barrier"); b != "" {
				p.Line([]picture.Point{{X: at.X - 7, Y: at.Y}, {X: at.X + 7, Y: at.Y}}, picture.Style{Stroke: "#aa3300", Width: 3})
				p.Write(picture.Point{X: at.X + 10, Y: at.Y + 11}, b, picture.Text{Size: 11, Colour: "#aa3300"})
			}
		}
	}
	for _, r := range p.d.m.Rules() {
		p.rule(r)
	}
}

func roadStyle(r roadnettest.Road) (casing, fill picture.Style) {
	fill = picture.Style{Stroke: "#ffffff", Width: 7, Round: true}
	switch r.Tags.Get("highway") {
	case "construction":
		return casing, picture.Style{Stroke: "#b0b0b0", Width: 3, Dash: "3 5"}
	case "motorway", "trunk", "primary":
		fill.Width = 10
	case "service", "track":
		fill.Width = 4.5
	}
	if r.Tags.Get("route") == "ferry" {
		return casing, picture.Style{Stroke: "#3b7ea1", Width: 2, Dash: "8 5"}
	}
	if r.Tags.Get("access") == "private" {
		fill.Stroke = "#f3dfc1"
	}
	casing = picture.Style{Stroke: "#a8a8a8", Width: fill.Width + 2, Round: true}
	if r.Tags.Get("tunnel") != "" {
		casing.Dash, fill.Stroke, casing.Round, fill.Round = "6 4", "#e6e6e6", false, false
	}
	return casing, fill
}

// roadWords names what sets a road apart from a residential street.
func roadWords(r roadnettest.Road) string {
	var words []string
	for _, t := range r.Tags {
		switch {
		case t.Key == "highway" && t.Value == "residential", t.Key == "oneway", t.Key == "layer", t.Key == "junction":
		case t.Key == "highway":
			words = append(words, strings.ReplaceAll(t.Value, "_", " "))
		case t.Key == "tunnel":
			words = append(words, "tunnel")
		case t.Key == "route":
			words = append(words, t.Value)
		case t.Key == "lanes":
			words = append(words, t.Value+" lanes")
		case t.Key == "access" && t.Value == "private":
			words = append(words, "private")
		case t.Key == "psv":
			words = append(words, "buses only")
		}
	}
	return strings.Join(words, ", ")
}

// alongside writes words above the middle of a line's longest visible stretch.
func (p panel) alongside(line []picture.Point, words string) {
	best, at := 0.0, picture.Point{}
	for i := 1; i < len(line); i++ {
		a, b := line[i-1], line[i]
		x0, x1 := max(min(a.X, b.X), p.corner.X), min(max(a.X, b.X), p.corner.X+p.v.width)
		if length := math.Hypot(x1-x0, b.Y-a.Y); x1 >= x0 && length > best {
			f := 0.62
			if b.X != a.X {
				f = ((x0 + (x1-x0)*0.62) - a.X) / (b.X - a.X)
			}
			best, at = length, picture.Point{X: a.X + f*(b.X-a.X), Y: a.Y + f*(b.Y-a.Y)}
		}
	}
	if best > 0 {
		p.Write(picture.Point{X: at.X, Y: at.Y - 9}, words, picture.Text{Size: 11, Colour: "#777777", Anchor: picture.Middle})
	}
}

// chevrons draws arrow heads along a line, so many pixels apart.
func (p panel) chevrons(line []picture.Point, colour string, apart float64) {
	for i := 1; i < len(line); i++ {
		a, b := line[i-1], line[i]
		length := math.Hypot(b.X-a.X, b.Y-a.Y)
		n := math.Max(1, math.Floor(length/apart))
		for k := range int(n) {
			f := (float64(k) + 0.5) / n
			p.arrow(picture.Point{X: a.X + f*(b.X-a.X), Y: a.Y + f*(b.Y-a.Y)}, (b.X-a.X)/length, (b.Y-a.Y)/length, colour, 4)
		}
	}
}

func (p panel) arrow(at picture.Point, dx, dy float64, colour string, size float64) {
	if dx != dx || dy != dy { // a line without length
		return
	}
	p.Line([]picture.Point{
		{X: at.X - size*dx + size*dy, Y: at.Y - size*dy - size*dx},
		{X: at.X + size*dx, Y: at.Y + size*dy},
		{X: at.X - size*dx - size*dy, Y: at.Y - size*dy + size*dx},
	}, picture.Style{Stroke: colour, Width: 1.6, Round: true})
}

// rule draws the sign of a turn restriction where it forbids.
func (p panel) rule(r roadnettest.Rule) {
	x, y, _, ok := p.d.m.Place(r.Members[1])
	if !ok {
		for _, road := range p.d.m.Roads() {
			if road.Name == r.Members[1] {
				x, y, _, ok = p.d.m.Place(road.Nodes[len(road.Nodes)-1])
			}
		}
	}
	if !ok {
		return
	}
	at := p.at(x, y)
	at.X, at.Y = at.X-16, at.Y+17
	p.Ellipse(at, 7, 7, picture.Style{Fill: "#ffffff", Stroke: "#cc2222", Width: 2})
	if strings.HasPrefix(r.Kind, "no_") {
		p.Line([]picture.Point{{X: at.X - 4.5, Y: at.Y + 4.5}, {X: at.X + 4.5, Y: at.Y - 4.5}}, picture.Style{Stroke: "#cc2222", Width: 2})
	}
	words := strings.ReplaceAll(r.Kind, "_", " ")
	if r.Broken {
		words += " (a member is missing)"
	}
	p.Write(picture.Point{X: at.X - 11, Y: at.Y + 4}, words, picture.Text{Size: 11, Colour: "#aa2222", Anchor: picture.End})
}

// seen is an observation that can be drawn.
type seen struct {
	Observation
	index int // in results
}

const mostShown = 240 // of the observations of a picture

func (d *drive) shown() (out []seen) {
	for i, o := range d.all {
		if _, ok := sight(o, 0); ok && len(out) < mostShown {
			out = append(out, seen{o, i})
		}
	}
	return out
}

// input draws the observations as they came, with the circles of their accuracy.
func (p panel) input() {
	all := p.d.shown()
	dense := len(all) > 14
	for _, o := range all {
		acc := o.AccuracyM
		if !(acc > 0) {
			acc = noAccuracy
		}
		p.Ellipse(p.place(o.Point), acc*p.v.kx, acc*p.v.ky, picture.Style{Fill: "#56b4e9", Opacity: map[bool]float64{false: .22, true: .08}[dense]})
	}
	var times []caption
	for i, o := range all {
		x, y := p.d.m.XY(o.Point)
		at := p.at(x, y)
		if !p.v.holds(x, y) {
			continue
		}
		if o.SpeedMPS >= DefaultConfig().HeadingMinMPS {
			a := o.Heading * math.Pi / 180
			p.Line([]picture.Point{at, {X: at.X + 13*math.Sin(a), Y: at.Y - 13*math.Cos(a)}}, picture.Style{Stroke: "#0b3d5c", Width: 1.5})
		}
		p.Ellipse(at, 3, 3, picture.Style{Fill: "#0b3d5c"})
		if !dense || i == 0 || i == len(all)-1 {
			times = note(times, picture.Point{X: at.X, Y: at.Y + 16}, p.seconds(o))
		}
	}
	for _, c := range times {
		p.Write(c.at, c.words, picture.Text{Size: 10, Colour: "#0b3d5c", Anchor: picture.Middle})
	}
	p.beyond()
}

// caption is words at a place.
type caption struct {
	at    picture.Point
	words string
}

// note adds a caption, to one that it would cover where there is one.
func note(all []caption, at picture.Point, words string) []caption {
	for i := range all {
		if math.Abs(all[i].at.X-at.X) < 12+2.8*float64(len(all[i].words)) && math.Abs(all[i].at.Y-at.Y) < 10 {
			all[i].words += ", " + words
			return all
		}
	}
	return append(all, caption{at, words})
}

func (p panel) seconds(o seen) string {
	s := o.Time.Sub(epoch()).Seconds()
	if math.Abs(s) > 1e6 {
		return fmt.Sprintf("year %d", o.Time.Year())
	}
	return fmt.Sprintf("%g s", math.Round(s*10)/10)
}

// beyond marks at the borders of the view that observations lie outside, and how far off.
func (p panel) beyond() {
	type side struct {
		n    int
		far  float64
		x, y float64 // of the farthest, cut to the view
	}
	sides := map[int]*side{}
	for _, o := range p.d.shown() {
		x, y := p.d.m.XY(o.Point)
		if p.v.holds(x, y) {
			continue
		}
		bx, by := min(max(x, p.v.x0), p.v.x1), min(max(y, p.v.y0), p.v.y1)
		k := 0
		if math.Abs(x-bx)*p.v.kx < math.Abs(y-by)*p.v.ky {
			k = 1
		}
		if x < bx || x == bx && y < by {
			k += 2
		}
		if sides[k] == nil {
			sides[k] = &side{}
		}
		s := sides[k]
		s.n++
		if off := math.Hypot(x-bx, y-by); off > s.far {
			s.far, s.x, s.y = off, bx, by
		}
	}
	for k := range 4 {
		s := sides[k]
		if s == nil {
			continue
		}
		words := fmt.Sprintf("%.0f m off", s.far)
		if s.far > 9999 {
			words = fmt.Sprintf("%.0f km off", s.far/1000)
		}
		if s.n > 1 {
			words = fmt.Sprintf("%d more, to %s", s.n, words)
		}
		at := p.at(s.x, s.y)
		at.X = min(max(at.X, p.corner.X+12), p.corner.X+p.v.width-12)
		at.Y = min(max(at.Y, p.corner.Y+12), p.corner.Y+p.v.height-12)
		d := [4]picture.Point{{X: 1}, {Y: -1}, {X: -1}, {Y: 1}}[k]
		p.arrow(at, d.X, d.Y, "#cc2222", 7)
		shift := 18 + 3.1*float64(len(words))
		if at.X > p.corner.X+p.v.width/2 {
			shift = -shift
		}
		p.tag(picture.Point{X: at.X + shift, Y: at.Y + 4}, words, "#cc2222")
	}
}
