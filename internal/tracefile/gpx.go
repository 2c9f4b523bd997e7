package tracefile

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Deepest nesting of elements: real files have about eight.
const maxXMLDepth = 64

// gpx reads the track points. A track's name is its vehicle's; a track without one is a vehicle of its own, named by the file. Route points
// and waypoints are no positions of a vehicle and are left out.
func (s *source) gpx(r *bufio.Reader) {
	s.opts.Columns = nil // it has none
	g := &gpxReader{s: s, guard: &guard{r: r, bound: s.opts.MaxRow}}
	g.d = xml.NewDecoder(g.guard)
	g.d.CharsetReader = latin1
	for {
		more, err := g.token()
		switch {
		case err != nil && errors.Is(err, io.EOF):
			g.end()
			return
		case err != nil:
			line, _ := g.d.InputPos()
			s.fatal(line, "", gpxReason(err, s.opts.MaxRow))
			return
		case !more:
			return
		}
	}
}

func gpxReason(err error, bound int) string {
	var syntax *xml.SyntaxError
	switch {
	case errors.Is(err, errRowTooLong):
		return fmt.Sprintf("one element or text is longer than %d bytes", bound)
	case errors.As(err, &syntax) && strings.Contains(syntax.Msg, "EOF"):
		return "the file ends in the middle: it is truncated"
	case errors.As(err, &syntax):
		return "not XML: " + syntax.Msg
	}
	return reasonOf(err)
}

type gpxReader struct {
	s     *source
	d     *xml.Decoder
	guard *guard

	depth, elements, tracks, points, others int
	point                                   *fields // of the track point that is being read
	line, pointDepth                        int
	text                                    string // field whose text comes next
	trackDepth                              int
	vehicle                                 string // of the track; empty: by the file
	naming                                  bool   // within the track's name
}

// token takes one token; false: the reader wants no more.
func (g *gpxReader) token() (bool, error) {
	g.guard.used = 0
	t, err := g.d.Token()
	if err != nil {
		return false, err
	}
	switch t := t.(type) {
	case xml.StartElement:
		g.depth++
		g.elements++
		if g.depth > maxXMLDepth {
			return false, fmt.Errorf("elements are nested deeper than %d", maxXMLDepth)
		}
		if g.depth == 1 && t.Name.Local != "gpx" {
			return false, errors.New("not a GPX file: its first element is another one")
		}
		g.start(t)
	case xml.CharData:
		if g.naming {
			g.vehicle += string(t)
		}
		if g.text != "" {
			g.point.set(g.text, strings.TrimSpace(string(t)))
			g.text = ""
		}
	case xml.EndElement:
		g.text = ""
		g.depth--
		if g.naming {
			g.naming, g.vehicle = false, g.named(strings.TrimSpace(g.vehicle))
		}
		if g.point != nil && g.depth < g.pointDepth {
			f := g.point
			g.point = nil
			fix, bad := g.s.fix(g.line, f)
			if bad != nil {
				bad.ofGPX()
			}
			return g.s.row(fix, bad), nil
		}
	}
	return true, nil
}

func (g *gpxReader) start(t xml.StartElement) {
	g.text = ""
	switch t.Name.Local {
	case "trk":
		g.tracks++
		g.trackDepth, g.vehicle = g.depth, ""
	case "name":
		g.naming = g.trackDepth > 0 && g.depth == g.trackDepth+1
		if g.naming {
			g.vehicle = ""
		}
	case "rtept", "wpt":
		g.others++
	case "trkpt":
		g.points++
		g.line, _ = g.d.InputPos()
		g.point, g.pointDepth = &fields{}, g.depth
		if g.point.vehicle = g.vehicle; g.vehicle == "" && g.tracks > 1 {
			g.point.vehicle = g.s.vehicle + "-" + strconv.Itoa(g.tracks)
		}
		for _, a := range t.Attr {
			if a.Name.Local == ColLon || a.Name.Local == ColLat {
				g.point.set(a.Name.Local, a.Value)
			}
		}
	}
	if g.point == nil {
		return
	}
	switch t.Name.Local { // the last two in version 1.0 and in Garmin's extension
	case "time":
		g.text = ColTime
	case "speed":
		g.text = ColSpeed
	case "course":
		g.text = ColHeading
	}
}

// named gives a track's name as a vehicle's. One that no vehicle can have is as if it were absent: the points are good.
func (g *gpxReader) named(name string) string {
	if len(name) > maxVehicle || strings.ContainsRune(name, 0) {
		return ""
	}
	return name
}

// ofGPX lets an error speak of what the file has in place of columns.
func (e *RowError) ofGPX() {
	switch e.Column {
	case ColLon, ColLat:
		e.Place = "attribute " + e.Column + " of <trkpt>"
	case ColSpeed:
		e.Place = "element <speed>"
	case ColHeading:
		e.Place = "element <course>"
	case ColTime:
		e.Place = "element <time>"
	}
}

func (g *gpxReader) end() {
	switch {
	case g.points > 0:
	case g.d.InputOffset() == 0:
		g.s.fatal(0, "", "the file is empty")
	case g.elements == 0:
		g.s.fatal(0, "", "not a GPX file: it has no element")
	case g.others > 0:
		g.s.fatal(0, "", fmt.Sprintf("no track points; %d route points or waypoints, which are no positions of a vehicle", g.others))
	default:
		g.s.fatal(0, "", "no track points")
	}
}

// guard bounds what the decoder may read for one token, so that it cannot be made to hold a huge one.
type guard struct {
	r           *bufio.Reader
	used, bound int
}

// ReadByte is what the decoder reads by.
func (g *guard) ReadByte() (byte, error) {
	if g.used >= g.bound {
		return 0, errRowTooLong
	}
	g.used++
	return g.r.ReadByte()
}

// Read is there for the decoder's interface.
func (g *guard) Read(p []byte) (int, error) {
	if g.used >= g.bound {
		return 0, errRowTooLong
	}
	n, err := g.r.Read(p[:min(len(p), g.bound-g.used)])
	g.used += n
	return n, err
}

// latin1 reads the character sets of older receivers; the fields that count are plain ASCII in all of them.
func latin1(charset string, in io.Reader) (io.Reader, error) {
	switch strings.ToLower(charset) {
	case "iso-8859-1", "iso-8859-15", "latin1", "windows-1252", "us-ascii", "ascii":
		return &latin1Reader{r: in}, nil
	}
	return nil, fmt.Errorf("unknown character set %.40q", charset)
}

// latin1Reader gives UTF-8 for a character set of one byte a character, byte by byte, since the guard counts for one token.
type latin1Reader struct {
	r    io.Reader
	next byte
	has  bool
}

// ReadByte gives the next byte.
func (l *latin1Reader) ReadByte() (byte, error) {
	if l.has {
		l.has = false
		return l.next, nil
	}
	var b [1]byte
	if _, err := io.ReadFull(l.r, b[:]); err != nil {
		return 0, err
	}
	if b[0] < 0x80 {
		return b[0], nil
	}
	l.next, l.has = 0x80|b[0]&0x3F, true
	return 0xC0 | b[0]>>6, nil
}

// Read is there for the decoder's interface.
func (l *latin1Reader) Read(p []byte) (int, error) {
	for i := range p {
		b, err := l.ReadByte()
		if err != nil {
			if i > 0 {
				return i, nil
			}
			return 0, err
		}
		p[i] = b
	}
	return len(p), nil
}
