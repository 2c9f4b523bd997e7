package picture

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Point is a place in the picture: pixels from its upper left corner.
type Point struct{ X, Y float64 }

// Style says how a shape is drawn. Colours are CSS colours; an empty one is none.
type Style struct {
	Stroke  string
	Fill    string
	Width   float64
	Dash    string // as stroke-dasharray
	Opacity float64
	Round   bool // ends and corners of lines
}

func (s Style) attributes() string {
	var b strings.Builder
	fill := s.Fill
	if fill == "" {
		fill = "none"
	}
	fmt.Fprintf(&b, ` fill="%s"`, fill)
	if s.Stroke != "" {
		fmt.Fprintf(&b, ` stroke="%s" stroke-width="%s"`, s.Stroke, number(s.Width))
	}
	if s.Dash != "" {
		fmt.Fprintf(&b, ` stroke-dasharray="%s"`, s.Dash)
	}
	if s.Opacity != 0 && s.Opacity != 1 {
		fmt.Fprintf(&b, ` opacity="%s"`, strconv.FormatFloat(s.Opacity, 'g', 3, 64))
	}
	if s.Round {
		b.WriteString(` stroke-linecap="round" stroke-linejoin="round"`)
	}
	return b.String()
}

// Anchor says which end of a text is at its place.
type Anchor string

// The anchors.
const (
	Start  Anchor = "start"
	Middle Anchor = "middle"
	End    Anchor = "end"
)

// Text is how words are written.
type Text struct {
	Size   float64
	Colour string
	Anchor Anchor
	Bold   bool
	Turned bool // upwards
}

// SVG is a picture in the making.
type SVG struct {
	width, height float64
	body          strings.Builder
	clips         int
}

// New begins a picture of a size in pixels.
func New(width, height float64) *SVG { return &SVG{width: width, height: height} }

// Bytes is the picture as a file.
func (s *SVG) Bytes() []byte {
	w, h := number(s.width), number(s.height)
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif">
<rect width="100%%" height="100%%" fill="#ffffff"/>
%s</svg>
`, w, h, w, h, s.body.String())
}

// Line draws a line over its points.
func (s *SVG) Line(points []Point, style Style) {
	if len(points) < 2 {
		return
	}
	fmt.Fprintf(&s.body, `<polyline points="%s"%s/>`+"\n", list(points), style.attributes())
}

// Area draws a closed shape.
func (s *SVG) Area(points []Point, style Style) {
	fmt.Fprintf(&s.body, `<polygon points="%s"%s/>`+"\n", list(points), style.attributes())
}

// Ellipse draws an ellipse around a place; a circle where both radii are one.
func (s *SVG) Ellipse(at Point, rx, ry float64, style Style) {
	fmt.Fprintf(&s.body, `<ellipse cx="%s" cy="%s" rx="%s" ry="%s"%s/>`+"\n", number(at.X), number(at.Y), number(rx), number(ry), style.attributes())
}

// Rect draws a rectangle between two corners.
func (s *SVG) Rect(a, b Point, style Style) {
	fmt.Fprintf(&s.body, `<rect x="%s" y="%s" width="%s" height="%s"%s/>`+"\n", number(min(a.X, b.X)), number(min(a.Y, b.Y)), number(math.Abs(a.X-b.X)), number(math.Abs(a.Y-b.Y)), style.attributes())
}

// Write writes words with their base line at a place.
func (s *SVG) Write(at Point, words string, t Text) {
	extra := ""
	if t.Bold {
		extra = ` font-weight="bold"`
	}
	if t.Turned {
		extra += fmt.Sprintf(` transform="rotate(-90 %s %s)"`, number(at.X), number(at.Y))
	}
	anchor := t.Anchor
	if anchor == "" {
		anchor = Start
	}
	fmt.Fprintf(&s.body, `<text x="%s" y="%s" font-size="%s" fill="%s" text-anchor="%s"%s>%s</text>`+"\n", number(at.X), number(at.Y), number(t.Size), t.Colour, anchor, extra, escape(words))
}

// Clip draws what f draws within a rectangle only.
func (s *SVG) Clip(a, b Point, f func()) {
	s.clips++
	fmt.Fprintf(&s.body, `<clipPath id="c%d"><rect x="%s" y="%s" width="%s" height="%s"/></clipPath><g clip-path="url(#c%d)">`+"\n", s.clips, number(a.X), number(a.Y), number(b.X-a.X), number(b.Y-a.Y), s.clips)
	f()
	s.body.WriteString("</g>\n")
}

func list(points []Point) string {
	var b strings.Builder
	for i, p := range points {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(number(p.X) + "," + number(p.Y))
	}
	return b.String()
}

// number writes tenths, so that the last bits of a computation do not show.
func number(v float64) string {
	v = math.Round(v*10) / 10
	if v == 0 {
		v = 0 // no negative zero
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}
