package tracefile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Names of columns and fields.
const (
	ColVehicle  = "vehicle"
	ColTime     = "time" // RFC 3339 and close kin
	ColTimeMS   = "t_ms" // Unix milliseconds
	ColTimeS    = "t_s"  // Unix seconds, a fraction allowed
	ColLon      = "lon"
	ColLat      = "lat"
	ColPoint    = "point" // WKT, POINT(lon lat), in the place of lon and lat
	ColLine     = "geom"  // WKT, LINESTRING(lon lat,…), a whole trajectory in a row of CSV
	ColSpeed    = "speed_mps"
	ColHeading  = "heading_deg"
	ColAccuracy = "accuracy_m"
)

// ColumnNames lists the names that a row may have.
func ColumnNames() []string {
	return []string{ColVehicle, ColTime, ColTimeMS, ColTimeS, ColLon, ColLat, ColPoint, ColLine, ColSpeed, ColHeading, ColAccuracy}
}

// Columns maps our names to the file's. A time may be put together from two columns, joined with a plus: "date+time".
type Columns map[string]string

// ParseColumns reads a mapping such as "lat=latitude,lon=longitude,time=Date+Time".
func ParseColumns(text string) (Columns, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	c := Columns{}
	for pair := range strings.SplitSeq(text, ",") {
		ours, theirs, ok := strings.Cut(pair, "=")
		ours, theirs = strings.TrimSpace(ours), strings.TrimSpace(theirs)
		switch {
		case !ok || theirs == "":
			return nil, fmt.Errorf("column mapping %q: want ours=theirs, such as lat=latitude", pair)
		case !slices.Contains(ColumnNames(), ours):
			return nil, fmt.Errorf("column mapping %q: ours must be one of %s", pair, strings.Join(ColumnNames(), ", "))
		case c[ours] != "":
			return nil, fmt.Errorf("column mapping %q: %s is mapped twice", pair, ours)
		}
		c[ours] = theirs
	}
	return c, nil
}

// theirs is the file's name of a column of ours.
func (c Columns) theirs(ours string) string {
	if t, ok := c[ours]; ok {
		return t
	}
	return ours
}

// forFMM fills the mapping in for a header that FMM reads, id;geom[;timestamp] or id;x;y[;timestamp], where the columns of a plain table
// are not there. Its times are seconds.
func (c Columns) forFMM(names []string) Columns {
	has := func(name string) bool { return slices.Contains(names, name) }
	if has(c.theirs(ColPoint)) || has(c.theirs(ColLon)) && has(c.theirs(ColLat)) {
		return c
	}
	out := maps.Clone(c)
	if out == nil {
		out = Columns{}
	}
	offer := func(ours, theirs string) {
		if _, taken := out[ours]; !taken && !has(ours) && has(theirs) {
			out[ours] = theirs
		}
	}
	if !has(c.theirs(ColLine)) {
		if !has("id") || !has("x") || !has("y") {
			return c
		}
		offer(ColLon, "x")
		offer(ColLat, "y")
	}
	offer(ColVehicle, "id")
	if c.theirs(ColTime) == ColTime && !has(ColTime) && !has(ColTimeMS) {
		offer(ColTimeS, "timestamp")
		offer(ColTimeS, "timestamps")
	}
	return out
}
