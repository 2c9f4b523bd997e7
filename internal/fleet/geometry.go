package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paulmach/orb"
	"github.com/paulmach/orb/encoding/wkt"
	"github.com/twpayne/go-polyline"
)

// Geometry is how the lines of outputs are written.
type Geometry string

// The ways to write a line. The zero value is Coordinates.
const (
	Coordinates Geometry = "geojson"   // an array of [lon,lat], as GeoJSON has it
	Polyline6   Geometry = "polyline6" // Google's encoding, with six decimals
	WKT         Geometry = "wkt"       // LINESTRING(lon lat,…)
	NoGeometry  Geometry = "none"
)

// ParseGeometry reads a name.
func ParseGeometry(name string) (Geometry, error) {
	all := []string{string(Coordinates), string(Polyline6), string(WKT), string(NoGeometry)}
	if !slices.Contains(all, name) {
		return "", fmt.Errorf("%.20q is none of %s", name, strings.Join(all, ", "))
	}
	return Geometry(name), nil
}

// EncodePolyline6 writes a line of [lon,lat] as Google's encoding with six decimals, latitude first, as Valhalla and OSRM read it.
func EncodePolyline6(line [][2]float64) string { return string(encodePolyline(line, 1e6)) }

// EncodePolyline5 is EncodePolyline6 with five decimals, as Google reads it.
func EncodePolyline5(line [][2]float64) string { return string(encodePolyline(line, 1e5)) }

func encodePolyline(line [][2]float64, scale float64) []byte {
	codec := polyline.Codec{Dim: 2, Scale: scale}
	points, flat := make([][]float64, len(line)), make([]float64, 2*len(line))
	for i, p := range line {
		flat[2*i], flat[2*i+1] = p[1], p[0]
		points[i] = flat[2*i : 2*i+2 : 2*i+2]
	}
	return codec.EncodeCoords(nil, points)
}

// EncodeWKT writes a line of [lon,lat] as well-known text. A single point is a line that ends where it begins, since one of one point is
// none; no point at all is an empty line.
func EncodeWKT(line [][2]float64) string {
	if len(line) == 0 {
		return "LINESTRING EMPTY"
	}
	out := make(orb.LineString, 0, max(len(line), 2))
	for _, p := range line {
		out = append(out, orb.Point(p))
	}
	if len(out) == 1 {
		out = append(out, out[0])
	}
	return wkt.MarshalString(out)
}

// Member gives what AppendJSONWith wants: the member of a span's JSON that has its line; nil for the one that it has anyway.
func (g Geometry) Member() func(dst []byte, line [][2]float64) []byte {
	switch g {
	case Polyline6:
		return func(dst []byte, line [][2]float64) []byte {
			dst = append(dst, `"polyline6":`...)
			return appendString(dst, EncodePolyline6(line))
		}
	case WKT:
		return func(dst []byte, line [][2]float64) []byte {
			return append(append(append(dst, `"wkt":"`...), EncodeWKT(line)...), '"')
		}
	case NoGeometry:
		return func(dst []byte, _ [][2]float64) []byte { return dst }
	case Coordinates:
	}
	return nil
}
