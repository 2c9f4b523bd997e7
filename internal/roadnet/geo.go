package roadnet

import "math"

const (
	// metresPerDegree is a degree of a great circle on a sphere of 6371008.8 m, the mean radius.
	metresPerDegree = 111195.07973436874
	e7              = 1e7
	halfTurnE7      = 1_800_000_000
)

// The geometry below uses only operations that IEEE 754 rounds exactly, with each product in a conversion of its own: the language
// lets a compiler fuse multiply and add otherwise, and a length could then differ between machines that must agree.

// cosDeg is the cosine of an angle of -90 to 90 degrees, by its series.
func cosDeg(deg float64) float64 {
	x := deg * (math.Pi / 180)
	z := float64(x * x)
	sum := 1.0
	for n := 22.0; n >= 2; n -= 2 { // 1 - z/(1*2) * (1 - z/(3*4) * (...))
		sum = 1 - float64(float64(z/(n*(n-1)))*sum)
	}
	return max(sum, 0)
}

// wrapE7 brings a difference of longitudes, in 1e-7 degrees, into (-180, 180].
func wrapE7(d int64) int64 {
	if d > halfTurnE7 {
		return d - 2*halfTurnE7
	}
	if d <= -halfTurnE7 {
		return d + 2*halfTurnE7
	}
	return d
}

// wrapDeg brings a difference of longitudes in degrees into (-180, 180].
func wrapDeg(d float64) float64 {
	if d > 180 {
		return d - 360
	}
	if d <= -180 {
		return d + 360
	}
	return d
}

// vertex is one point of a geometry; along is in cm from the geometry's start.
type vertex struct{ lon, lat, along int32 }

func (v vertex) point() Point { return Point{Lon: float64(v.lon) / e7, Lat: float64(v.lat) / e7} }

// between is the distance of two vertices in metres, on the plane that touches the sphere midway.
func between(a, b vertex) float64 {
	dx := float64(wrapE7(int64(b.lon)-int64(a.lon))) / e7
	dy := (float64(b.lat) - float64(a.lat)) / e7
	dx = float64(dx * cosDeg((float64(a.lat)+float64(b.lat))/(2*e7)))
	return float64(metresPerDegree * math.Sqrt(float64(dx*dx)+float64(dy*dy)))
}

// Distance is the distance of two points in metres, exact to a millionth within some kilometres.
func Distance(a, b Point) float64 {
	dx := float64(wrapDeg(b.Lon-a.Lon) * cosDeg((a.Lat+b.Lat)/2))
	dy := b.Lat - a.Lat
	return float64(metresPerDegree * math.Sqrt(float64(dx*dx)+float64(dy*dy)))
}

// bearingOf is the direction of a segment in degrees clockwise from north, [0,360); ok is false for two equal places.
func bearingOf(a, b vertex) (deg float64, ok bool) {
	dx := float64(wrapE7(int64(b.lon) - int64(a.lon)))
	dy := float64(b.lat) - float64(a.lat)
	if dx == 0 && dy == 0 {
		return 0, false
	}
	dx = float64(dx * cosDeg((float64(a.lat)+float64(b.lat))/(2*e7)))
	return turnInto360(math.Atan2(dx, dy) * (180 / math.Pi)), true
}

func turnInto360(deg float64) float64 {
	if deg < 0 {
		deg += 360
	}
	if deg >= 360 {
		deg -= 360
	}
	return deg
}

// lerp is the place at a share t of the way from a to b.
func lerp(a, b vertex, t float64) Point {
	dlon := float64(wrapE7(int64(b.lon) - int64(a.lon)))
	lon := (float64(a.lon) + float64(t*dlon)) / e7
	lat := (float64(a.lat) + float64(t*(float64(b.lat)-float64(a.lat)))) / e7
	if lon > 180 {
		lon -= 360
	} else if lon < -180 {
		lon += 360
	}
	return Point{Lon: lon, Lat: lat}
}

// valid says whether a point is on the globe; NaN is not.
func (p Point) valid() bool {
	return p.Lat >= -90 && p.Lat <= 90 && p.Lon >= -180 && p.Lon <= 180
}

// morton interleaves a place's bits, so that neighbours in space are neighbours in memory.
func morton(lon, lat int32) uint64 {
	return spread(uint32(int64(lon)+halfTurnE7)) | spread(uint32(int64(lat)+halfTurnE7))<<1
}

func spread(v uint32) uint64 {
	x := uint64(v)
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
	x = (x | x<<2) & 0x3333333333333333
	x = (x | x<<1) & 0x5555555555555555
	return x
}
