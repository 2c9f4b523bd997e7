package mapmatch

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"milepost/internal/picture"
	"milepost/internal/roadnet"
)

// output draws what was made of the observations: the ways driven, one colour a leg, with their flags; each observation with its place; breaks.
func (p panel) output() {
	paths := p.d.track.Paths()
	for i, path := range paths {
		p.path(path, picture.Colour(2*i))
	}
	final := make(map[int64]Position)
	for _, q := range p.d.track.Points {
		final[q.Seq] = q
	}
	for _, o := range p.d.shown() {
		p.fate(o, p.d.results[o.index], final)
	}
	for _, path := range paths {
		p.flags(path)
	}
	for _, r := range p.d.results {
		if r.Break != NoBreak {
			p.broken(r)
		}
	}
	p.beyond()
}

// path draws a connected way a little to the right of the roads' middle, so that there and back are two lines.
func (p panel) path(path []Span, colour string) {
	for i, s := range path {
		var line []picture.Point
		for _, g := range s.Geometry {
			line = append(line, p.place(g))
		}
		line = aside(line, 2.5)
		style := picture.Style{Stroke: colour, Width: 4, Opacity: .75, Round: true}
		if s.Inferred {
			style.Dash = "2 8"
		}
		p.Line(line, style)
		if i == len(path)-1 || i == len(path)/2 {
			if n := len(line); n >= 2 {
				a, b := line[n-2], line[n-1]
				if l := math.Hypot(b.X-a.X, b.Y-a.Y); l > 8 {
					p.arrow(picture.Point{X: b.X - 3*(b.X-a.X)/l, Y: b.Y - 3*(b.Y-a.Y)/l}, (b.X-a.X)/l, (b.Y-a.Y)/l, colour, 6)
				}
			}
		}
	}
}

// aside moves a line to its right, in pixels.
func aside(line []picture.Point, by float64) []picture.Point {
	out := make([]picture.Point, 0, len(line))
	for i := range line {
		a, b := line[max(i-1, 0)], line[min(i+1, len(line)-1)]
		dx, dy := b.X-a.X, b.Y-a.Y
		l := math.Hypot(dx, dy)
		if l == 0 {
			out = append(out, line[i])
			continue
		}
		out = append(out, picture.Point{X: line[i].X - by*dy/l, Y: line[i].Y + by*dx/l})
	}
	return out
}

// fate draws what became of an observation.
func (p panel) fate(o seen, r Result, final map[int64]Position) {
	x, y := p.d.m.XY(o.Point)
	at := p.at(x, y)
	if !p.v.holds(x, y) {
		return
	}
	const cross = 5
	q, placed := final[r.Seq]
	was := r.Disposition
	if placed {
		was = q.Disposition // what it was seen to be later
	}
	if was == Outlier || was == Regressed {
		colour := "#cc2222"
		if was == Regressed {
			colour = "#777777"
		}
		for _, s := range []float64{1, -1} {
			p.Line([]picture.Point{{X: at.X - cross, Y: at.Y - s*cross}, {X: at.X + cross, Y: at.Y + s*cross}}, picture.Style{Stroke: colour, Width: 2})
		}
		return
	}
	if !placed {
		p.Ellipse(at, 4.5, 4.5, picture.Style{Stroke: "#d55e00", Width: 2, Fill: "#ffffff"})
		return
	}
	to := p.place(q.Snapped)
	p.Line([]picture.Point{at, to}, picture.Style{Stroke: "#222222", Width: 1})
	p.Ellipse(at, 1.8, 1.8, picture.Style{Fill: "#222222"})
	fill := "#222222"
	if q.Disposition != Matched {
		fill = "#ffffff" // placed from its neighbours
	}
	p.Ellipse(to, 3, 3, picture.Style{Fill: fill, Stroke: "#222222", Width: 1})
}

// flags writes what is said of spans: once for each run of them, at the longest.
func (p panel) flags(path []Span) {
	for i := 0; i < len(path); {
		words, longest, next := flagOf(path[i], i > 0), i, i+1
		for next < len(path) && flagOf(path[next], true) == words {
			if path[next].ToM-path[next].FromM > path[longest].ToM-path[longest].FromM {
				longest = next
			}
			next++
		}
		begin, middle := p.place(path[i].Geometry[0]), p.middle(path[longest].Geometry)
		switch words {
		case "":
		case uturn:
			p.tag(picture.Point{X: begin.X, Y: begin.Y + 22}, words, "#8e2a6b")
		case banned:
			p.tag(picture.Point{X: begin.X + 56, Y: begin.Y + 4}, words, "#8e2a6b")
		default:
			p.tag(picture.Point{X: middle.X, Y: middle.Y + 22}, words, "#8e2a6b")
		}
		i = next
	}
}

const uturn, banned = "U-turn", "banned turn"

func flagOf(s Span, within bool) string {
	switch {
	case s.Entered == roadnet.TurnU && within:
		return uturn
	case s.Entered == roadnet.TurnBanned:
		return banned
	case s.Contraflow:
		return "against the one-way"
	case s.Private:
		return "private"
	case s.Inferred:
		return "inferred"
	default:
		return ""
	}
}

// middle is the place halfway along a line.
func (p panel) middle(line []roadnet.Point) picture.Point {
	var total, done float64
	for i := 1; i < len(line); i++ {
		total += metres(line[i-1], line[i])
	}
	for i := 1; i < len(line); i++ {
		l := metres(line[i-1], line[i])
		if done+l >= total/2 && l > 0 {
			a, b, f := p.place(line[i-1]), p.place(line[i]), (total/2-done)/l
			return picture.Point{X: a.X + f*(b.X-a.X), Y: a.Y + f*(b.Y-a.Y)}
		}
		done += l
	}
	return p.place(line[0])
}

// tag writes words on a ground of their own, within the panel.
func (p panel) tag(at picture.Point, words, colour string) {
	half := 3.1*float64(len(words)) + 4
	at.X = min(max(at.X, p.corner.X+half+2), p.corner.X+p.v.width-half-2)
	at.Y = min(max(at.Y, p.corner.Y+14), p.corner.Y+p.v.height-6)
	p.Rect(picture.Point{X: at.X - half, Y: at.Y - 10}, picture.Point{X: at.X + half, Y: at.Y + 4}, picture.Style{Fill: "#ffffff", Stroke: colour, Width: 1})
	p.Write(at, words, picture.Text{Size: 11, Colour: colour, Anchor: picture.Middle})
}

// broken marks the break that a result tells of, at the last final place before it.
func (p panel) broken(r Result) {
	var last *Position
	for i := range p.d.track.Points {
		if q := &p.d.track.Points[i]; q.Seq < r.Seq {
			last = q
		}
	}
	// The first observation of the new stretch may be the one before this result's.
	if n := len(r.FinalPoints); n > 0 {
		last = &r.FinalPoints[n-1]
	}
	if last == nil {
		return
	}
	at := p.place(last.Snapped)
	p.Line([]picture.Point{{X: at.X + 9, Y: at.Y - 14}, {X: at.X + 9, Y: at.Y + 14}}, picture.Style{Stroke: "#cc2222", Width: 3})
	p.tag(picture.Point{X: at.X + 40, Y: at.Y - 20}, "break: "+breakName(r.Break), "#cc2222")
}

func breakName(b Break) string {
	switch b {
	case BreakGap:
		return "pause"
	case BreakJump:
		return "jump"
	case BreakOffRoad:
		return "off the road"
	case NoBreak:
	}
	return "none"
}

// counts says in words what the picture shows.
func (d *drive) counts() string {
	var out []string
	final := make(map[int64]Disposition)
	for _, q := range d.track.Points {
		final[q.Seq] = q.Disposition
	}
	n := map[Disposition]int{}
	for _, r := range d.results[:len(d.all)] {
		was := r.Disposition
		if f, ok := final[r.Seq]; ok {
			was = f // what it was seen to be later
		}
		n[was]++
	}
	for _, w := range []struct {
		d    Disposition
		word string
	}{{Matched, "matched"}, {Standing, "standing"}, {Interpolated, "between"}, {OffRoad, "off the road"}, {Outlier, "outlier"}, {Regressed, "too late"}} {
		if n[w.d] > 0 {
			out = append(out, fmt.Sprintf("%d %s", n[w.d], w.word))
		}
	}
	out = append(out, fmt.Sprintf("%.0f m driven", math.Abs(d.length())))
	for _, f := range []struct {
		n    int
		word string
	}{{d.uturns(), "U-turn"}, {len(d.breaks()), "break"}} {
		if f.n > 0 {
			out = append(out, fmt.Sprintf("%d %s%s", f.n, f.word, map[bool]string{true: "s"}[f.n > 1]))
		}
	}
	if slices.ContainsFunc(d.results, func(r Result) bool { return r.AccuracyClamped }) {
		out = append(out, "an accuracy was cut to the search's bound")
	}
	return strings.Join(out, " · ")
}

// sketch is the whole picture.
func (d *drive) sketch(title string, notes []string) []byte {
	v := d.look()
	height := titleHeight + labelHeight + v.height + rowHeight*float64(1+len(notes)) + 2*margin
	second := picture.Point{X: 2*margin + v.width, Y: titleHeight + labelHeight}
	if !v.beside {
		second = picture.Point{X: margin, Y: titleHeight + 2*labelHeight + v.height + margin/2}
		height += labelHeight + v.height + margin/2
	}
	s := picture.New(pictureWidth, height)
	s.Write(picture.Point{X: margin, Y: 22}, title, picture.Text{Size: 15, Colour: "#222222", Bold: true})
	in := panel{SVG: s, d: d, v: v, corner: picture.Point{X: margin, Y: titleHeight + labelHeight}}
	stretched := ""
	if v.ky > 1.05*v.kx {
		stretched = fmt.Sprintf(" (drawn %.1f times as high as long)", v.ky/v.kx)
	}
	in.frame("what came in"+stretched, in.input)
	in.scale()
	out := panel{SVG: s, d: d, v: v, corner: second}
	out.frame("what was made of it", out.output)
	y := second.Y + v.height + rowHeight + 2
	for _, line := range append([]string{d.counts()}, notes...) {
		s.Write(picture.Point{X: margin, Y: y}, line, picture.Text{Size: 12, Colour: "#333333"})
		y += rowHeight
	}
	return s.Bytes()
}

// scale draws a bar of a round number of metres, above the panel.
func (p panel) scale() {
	m := 10.0
	for _, next := range []float64{20, 50, 100, 200, 500, 1000, 2000} {
		if next*p.v.kx < 110 {
			m = next
		}
	}
	b := picture.Point{X: p.corner.X + p.v.width - 44, Y: p.corner.Y - 5}
	a := picture.Point{X: b.X - m*p.v.kx, Y: b.Y}
	p.Line([]picture.Point{{X: a.X, Y: a.Y - 4}, a, b, {X: b.X, Y: b.Y - 4}}, picture.Style{Stroke: "#555555", Width: 1})
	p.Write(picture.Point{X: b.X + 5, Y: b.Y + 1}, fmt.Sprintf("%g m", m), picture.Text{Size: 10, Colour: "#555555"})
}
