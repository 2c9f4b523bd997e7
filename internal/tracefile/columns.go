package tracefile

import (
	"fmt"
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
	ColSpeed    = "speed_mps"
	ColHeading  = "heading_deg"
	ColAccuracy = "accuracy_m"
)

// ColumnNames lists the names that a row may have.
func ColumnNames() []string {
	return []string{ColVehicle, ColTime, ColTimeMS, ColTimeS, ColLon, ColLat, ColPoint, ColSpeed, ColHeading, ColAccuracy}
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
