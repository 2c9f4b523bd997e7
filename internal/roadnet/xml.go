package roadnet

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Bounds that no real object comes near: they keep memory small on damaged input.
const (
	maxToken   = 4 << 20
	maxMembers = 100_000 // nodes of a way, members of a relation, tags of an object
)

// xmlReader takes OSM objects from XML, token by token.
type xmlReader struct {
	in    *importer
	dec   *xml.Decoder
	meter tokenMeter
	depth int

	kind    string // of the open object, empty outside
	id      int64
	lat     int64
	lon     int64
	placed  bool
	tags    Tags
	refs    []int64
	members []Member
}

// tokenMeter ends the reading of a token that is too long.
type tokenMeter struct {
	r io.Reader
	n int
}

func (m *tokenMeter) Read(b []byte) (int, error) {
	if m.n > maxToken {
		return 0, fmt.Errorf("%w: a token of more than %d bytes", ErrCorrupt, maxToken)
	}
	n, err := m.r.Read(b)
	m.n += n
	return n, err
}

func (in *importer) readXML(ctx context.Context, r io.Reader) error {
	x := &xmlReader{in: in, meter: tokenMeter{r: r}}
	x.dec = xml.NewDecoder(&x.meter)
	for n := 0; !in.finished(); n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		x.meter.n = 0
		token, err := x.dec.RawToken()
		if errors.Is(err, io.EOF) {
			return x.atEnd()
		}
		if err == nil {
			err = x.token(token)
		}
		if err != nil {
			line, _ := x.dec.InputPos()
			return fmt.Errorf("line %d: %w", line, x.about(classify(err)))
		}
	}
	return nil
}

// classify says of the XML package's errors whether the file ends too early or is wrong.
func classify(err error) error {
	var syntax *xml.SyntaxError
	switch {
	case !errors.As(err, &syntax):
		return err
	case syntax.Msg == "unexpected EOF":
		return fmt.Errorf("cut short: %w", io.ErrUnexpectedEOF)
	default:
		return fmt.Errorf("%w: %s", ErrCorrupt, syntax.Msg)
	}
}

func (x *xmlReader) atEnd() error {
	if x.depth > 0 {
		line, _ := x.dec.InputPos()
		return fmt.Errorf("line %d: %w", line, x.about(fmt.Errorf("cut short: %w", io.ErrUnexpectedEOF)))
	}
	return nil
}

// about names the open object.
func (x *xmlReader) about(err error) error {
	if x.kind == "" {
		return err
	}
	return wrapObject(x.kind, x.id, err)
}

func (x *xmlReader) token(t xml.Token) error {
	switch t := t.(type) {
	case xml.StartElement:
		x.depth++
		return x.start(&t)
	case xml.EndElement:
		x.depth--
		if x.depth < 0 {
			return fmt.Errorf("%w: </%s> without a beginning", ErrCorrupt, t.Name.Local)
		}
		if x.kind != "" && t.Name.Local == x.kind {
			x.finish()
			x.kind = ""
		}
	}
	return nil
}

func (x *xmlReader) start(e *xml.StartElement) error {
	name := e.Name.Local
	switch {
	case x.depth == 1:
		if name != "osm" {
			return fmt.Errorf("%w: the root is <%s>", ErrNotOSM, name)
		}
	case x.depth == 2:
		if name == "node" && x.in.pass == passNodes || (name == "way" || name == "relation") && x.in.pass == passWays {
			return x.open(name, e.Attr)
		}
	case x.depth == 3 && x.kind != "":
		return x.child(name, e.Attr)
	}
	return nil
}

func (x *xmlReader) open(name string, attrs []xml.Attr) (err error) {
	x.tags, x.refs, x.members = x.tags[:0], x.refs[:0], x.members[:0]
	var lat, lon string
	id := ""
	for _, a := range attrs {
		switch a.Name.Local {
		case "id":
			id = a.Value
		case "lat":
			lat = a.Value
		case "lon":
			lon = a.Value
		}
	}
	if x.id, err = strconv.ParseInt(id, 10, 64); err != nil {
		return fmt.Errorf("%w: %s without a proper id", ErrCorrupt, name)
	}
	x.kind = name
	if name != "node" || !x.in.b.Needs(x.id) {
		return nil
	}
	// A deleted node has no place; it counts as missing.
	if x.placed = lat != "" && lon != ""; x.placed {
		if x.lat, err = degreesE7(lat); err == nil {
			x.lon, err = degreesE7(lon)
		}
	}
	return err
}

// degreesE7 reads an angle; one that is far off the globe is kept as such for the caller to count.
func degreesE7(s string) (int64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(v) {
		return 0, fmt.Errorf("%w: a place that is no number", ErrCorrupt)
	}
	return int64(math.Round(min(max(v, -1000), 1000) * e7)), nil
}

func (x *xmlReader) child(name string, attrs []xml.Attr) error {
	if len(x.tags)+len(x.refs)+len(x.members) > maxMembers {
		return fmt.Errorf("%w: more than %d parts", ErrCorrupt, maxMembers)
	}
	switch name {
	case "tag":
		var t Tag
		for _, a := range attrs {
			switch a.Name.Local {
			case "k":
				t.Key = a.Value
			case "v":
				t.Value = a.Value
			}
		}
		x.tags = append(x.tags, t)
	case "nd":
		ref, err := refOf(attrs)
		x.refs = append(x.refs, ref)
		return err
	case "member":
		ref, err := refOf(attrs)
		m := Member{Ref: ref, Kind: MemberRelation}
		for _, a := range attrs {
			switch {
			case a.Name.Local == "role":
				m.Role = strings.Clone(a.Value)
			case a.Name.Local == "type" && a.Value == "node":
				m.Kind = MemberNode
			case a.Name.Local == "type" && a.Value == "way":
				m.Kind = MemberWay
			}
		}
		x.members = append(x.members, m)
		return err
	}
	return nil
}

func refOf(attrs []xml.Attr) (int64, error) {
	for _, a := range attrs {
		if a.Name.Local != "ref" {
			continue
		}
		if v, err := strconv.ParseInt(a.Value, 10, 64); err == nil {
			return v, nil
		}
	}
	return 0, fmt.Errorf("%w: a member without a proper ref", ErrCorrupt)
}

func (x *xmlReader) finish() {
	switch x.kind {
	case "node":
		if x.placed && x.in.b.Needs(x.id) {
			x.in.b.AddNode(x.id, x.lon, x.lat, x.tags)
		}
	case "way":
		x.in.b.AddWay(x.id, x.refs, x.tags)
	case "relation":
		x.in.b.AddRelation(x.id, x.members, x.tags)
	}
}
