package mapmatch

import (
	"math"

	"milepost/internal/roadnet"
)

const unknown = -1

// place is a position in the integers that a state can hold exactly: 1e-7 degrees.
type place struct{ lon, lat int32 }

func (p place) point() roadnet.Point {
	return roadnet.Point{Lon: float64(p.lon) / 1e7, Lat: float64(p.lat) / 1e7}
}

// sighting is an Observation rounded to what a state can hold, so that it is the same before and after a hand-over.
type sighting struct {
	seq      int64
	at       int64 // microseconds of Unix time
	place    place
	accuracy int32 // cm, unknown where not given
	speed    int32 // cm/s, unknown where not given
	heading  int32 // whole degrees [0,360), unknown where not given
}

// sight rounds an observation; false where it is not a position on Earth.
func sight(o Observation, seq int64) (sighting, bool) {
	s := sighting{seq: seq, at: o.Time.UnixMicro(), accuracy: unknown, speed: unknown, heading: unknown}
	// The year bound keeps every difference of times far from overflow.
	if y := o.Time.Year(); y < 1 || y > 9999 {
		return s, false
	}
	lon, lat := o.Point.Lon, o.Point.Lat
	if !(lon >= -180 && lon <= 180 && lat >= -90 && lat <= 90) { // written so that NaN fails
		return s, false
	}
	s.place = place{lon: int32(math.Round(lon * 1e7)), lat: int32(math.Round(lat * 1e7))}
	if o.AccuracyM > 0 && o.AccuracyM <= math.MaxFloat64 {
		s.accuracy = int32(math.Round(math.Min(o.AccuracyM, 10_000) * 100))
	}
	if o.SpeedMPS >= 0 && o.SpeedMPS <= 1000 {
		s.speed = int32(math.Round(o.SpeedMPS * 100))
	}
	if h := math.Mod(o.Heading, 360); h >= -360 && h <= 360 {
		s.heading = (int32(math.Round(h)) + 360) % 360
	}
	return s, true
}

// sigma is the standard deviation that the model believes, in cm.
func (l *limits) sigma(s sighting) int32 {
	if s.accuracy < 0 {
		return l.defaultSigma
	}
	return min(max(s.accuracy, l.minSig), l.maxSig)
}

// radius is how far away candidates are sought, in cm.
func (l *limits) radius(s sighting) int32 {
	if s.accuracy < 0 {
		return min(max(3*l.defaultSigma, l.minRadius), l.maxRadius)
	}
	return min(max(3*s.accuracy, l.minRadius), l.maxRadius)
}

// rare says whether no observation came shortly before a new one, so that it has to tell more by itself.
func (m *Matcher) rare(s sighting) bool { return !m.w.seen || s.at-m.w.last >= m.lim.sparse }

// radius is how far away the candidates of the observation that is judged are sought, in cm.
func (m *Matcher) radius(s sighting) int32 {
	if m.sparse {
		return max(m.lim.radius(s), m.lim.sparseRadius)
	}
	return m.lim.radius(s)
}

// clamped says whether a sighting's accuracy asks for a wider search than is made (M38).
func (l *limits) clamped(s sighting) bool { return s.accuracy >= 0 && 3*s.accuracy > l.maxRadius }

// crow is the straight distance between two places in cm, at most maxCrow. roadnet.Distance rounds alike on every processor.
func crow(a, b place) int64 {
	return min(int64(math.Round(roadnet.Distance(a.point(), b.point())*100)), maxCrow)
}

// maxCrow bounds distances so that no sum of them overflows 32 bits.
const maxCrow = 500_000_00 // 500 km

// plausible says whether a vehicle can have been at both: its time is not before a's.
func (l *limits) plausible(a, b sighting) bool {
	dt := min(b.at-a.at, l.gap) / 1000 // ms
	reach := l.maxSpeed*dt/1000 + 300_00
	if a.speed >= 0 && b.speed >= 0 && dt <= 30_000 {
		// Both speeds are known: between them the vehicle cannot have gained more than 4 m/s each second.
		v := int64(max(a.speed, b.speed)) + 400*dt/1000
		noise := 3 * int64(l.sigma(a)+l.sigma(b))
		reach = min(reach, v*dt/1000*5/4+noise)
	}
	return crow(a.place, b.place) <= reach
}
