package traffic

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"milepost/internal/roadnet"
)

// Pair is one stretch between neighbouring OSM nodes, in driving order.
type Pair struct{ Way, From, To int64 }

// Fix is one reported position.
type Fix struct {
	Vehicle   string
	Time      time.Time
	Point     roadnet.Point
	AccuracyM float64
	SpeedMPS  float64
	Heading   float64 // degrees clockwise from north
}

// Fleet is a number of simulated vehicles.
type Fleet struct {
	graph    *roadnet.Graph
	vehicles []*vehicle
}

// vehicle is one of them.
type vehicle struct {
	id       string
	rnd      *rand.Rand
	edge     roadnet.EdgeIndex
	way      int64
	shape    []roadnet.ShapePoint
	next     int     // index in shape of the node ahead
	alongM   float64 // from the edge's start
	speed    float64 // metres a second
	temper   float64 // share of the free-flow speed that the driver takes
	standing float64 // seconds still to stand
	sigmaM   float64
	driftE   float64 // slow part of the GPS error, metres east and north
	driftN   float64
	truth    []Pair
}

const (
	accelerationMPS2 = 2.0
	driftMemoryS     = 30.0 // of the slow part of the GPS error
	whiteNoiseM      = 1.5
	stopShare        = 0.1 // of the junctions
)

// New makes a fleet of n vehicles somewhere on the network. The same seed gives the same fleet.
func New(g *roadnet.Graph, n int, seed uint64) (*Fleet, error) {
	f := &Fleet{graph: g}
	for i := range n {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		start, err := f.somewhere(rnd)
		if err != nil {
			return nil, err
		}
		v := &vehicle{
			id: fmt.Sprintf("veh%05d", i), rnd: rnd, temper: 0.75 + 0.3*rnd.Float64(), sigmaM: 3 + 4*rnd.Float64(),
		}
		v.driftE, v.driftN = v.sigmaM*rnd.NormFloat64(), v.sigmaM*rnd.NormFloat64()
		f.enter(v, start)
		v.alongM = rnd.Float64() * metres(g.Edge(start).LengthCM)
		v.speed = float64(g.Edge(start).SpeedKMH) / 3.6 * v.temper // in mid-drive
		v.passNodes()
		// The vehicle starts in mid-edge: the stretches behind it were never driven.
		v.truth = v.truth[len(v.truth)-1:]
		f.vehicles = append(f.vehicles, v)
	}
	return f, nil
}

func metres(cm int32) float64 { return float64(cm) / 100 }

// drivable says where the fleet goes of its own will (S2).
func drivable(e roadnet.Edge) bool {
	return e.Access.Has(roadnet.Car) && e.Component == 0 && e.Flags&(roadnet.FlagPrivate|roadnet.FlagFerry) == 0 && e.LengthCM > 0
}

// somewhere draws an edge by length, none of them a service road.
func (f *Fleet) somewhere(rnd *rand.Rand) (roadnet.EdgeIndex, error) {
	for range 100_000 {
		e := roadnet.EdgeIndex(rnd.IntN(max(f.graph.Edges(), 1)))
		if int(e) >= f.graph.Edges() {
			break
		}
		edge := f.graph.Edge(e)
		if drivable(edge) && edge.Flags&roadnet.FlagService == 0 && metres(edge.LengthCM) > 200*rnd.Float64() {
			return e, nil
		}
	}
	return roadnet.NoEdge, errors.New("traffic: the road network has no road to drive on")
}

// Vehicles is how many vehicles the fleet has.
func (f *Fleet) Vehicles() int { return len(f.vehicles) }

// ID names vehicle i.
func (f *Fleet) ID(i int) string { return f.vehicles[i].id }

// Drive moves vehicle i on by dt and gives the position that it reports then.
func (f *Fleet) Drive(i int, at time.Time, dt time.Duration) Fix {
	v := f.vehicles[i]
	for left := dt.Seconds(); left > 0; {
		step := min(left, 0.5)
		f.move(v, step)
		left -= step
	}
	return f.report(v, at, dt.Seconds())
}

// Truth gives what vehicle i has driven so far, the stretch it is on included. The caller must not change it.
func (f *Fleet) Truth(i int) []Pair { return f.vehicles[i].truth }

func (f *Fleet) move(v *vehicle, dt float64) {
	if v.standing > 0 {
		v.standing -= dt
		v.speed = 0
		return
	}
	edge := f.graph.Edge(v.edge)
	aim := float64(edge.SpeedKMH) / 3.6 * v.temper
	v.speed = min(v.speed+accelerationMPS2*dt, max(aim, 1))
	v.alongM += v.speed * dt
	for v.alongM >= metres(f.graph.Edge(v.edge).LengthCM) {
		over := v.alongM - metres(f.graph.Edge(v.edge).LengthCM)
		v.alongM = math.MaxFloat64
		v.passNodes()
		from := v.edge
		f.enter(v, f.turn(v))
		v.alongM = over
		f.junction(v, from)
	}
	v.passNodes()
}

// junction slows the vehicle for the corner that it took, or stops it there.
func (f *Fleet) junction(v *vehicle, from roadnet.EdgeIndex) {
	_, before := f.graph.At(from, f.graph.Edge(from).LengthCM)
	_, after := f.graph.At(v.edge, 0)
	if corner := math.Abs(math.Remainder(after-before, 360)); corner > 30 {
		v.speed = min(v.speed, 5)
	}
	if len(f.graph.Out(f.graph.Edge(v.edge).From)) > 2 && v.rnd.Float64() < stopShare {
		v.standing = 3 + 17*v.rnd.Float64()
		v.alongM = min(v.alongM, 0.5)
	}
}

// enter puts the vehicle at the start of an edge.
func (f *Fleet) enter(v *vehicle, e roadnet.EdgeIndex) {
	v.edge, v.alongM, v.next = e, 0, 1
	v.shape = f.graph.Shape(v.shape[:0], e)
	v.way = f.graph.Edge(e).Way
	v.note()
}

// note books the stretch that the vehicle is on (S3).
func (v *vehicle) note() {
	v.truth = append(v.truth, Pair{Way: v.way, From: v.shape[v.next-1].Node, To: v.shape[v.next].Node})
}

// passNodes books the stretches up to where the vehicle is.
func (v *vehicle) passNodes() {
	for v.next < len(v.shape)-1 && v.alongM >= metres(v.shape[v.next].AlongCM) {
		v.next++
		v.note()
	}
}

// turn draws the next edge among those that the rules allow; big roads and going straight on are likelier.
func (f *Fleet) turn(v *vehicle) roadnet.EdgeIndex {
	edge := f.graph.Edge(v.edge)
	_, before := f.graph.At(v.edge, edge.LengthCM)
	var choices []roadnet.EdgeIndex
	var weights []float64
	total := 0.0
	for _, e := range f.graph.Out(edge.To) {
		next := f.graph.Edge(e)
		if f.graph.Turn(v.edge, e) != roadnet.TurnFree || !drivable(next) || f.deadEnd(e) {
			continue
		}
		_, after := f.graph.At(e, 0)
		w := float64(next.SpeedKMH) * (1.2 + math.Cos(math.Remainder(after-before, 360)*math.Pi/180))
		if next.Flags&roadnet.FlagService != 0 {
			w *= 0.05
		}
		choices, weights, total = append(choices, e), append(weights, w), total+w
	}
	at := v.rnd.Float64() * total
	for i, w := range weights {
		if at -= w; at <= 0 {
			return choices[i]
		}
	}
	return f.lastResort(v.edge)
}

// deadEnd says whether nothing but turning back follows an edge.
func (f *Fleet) deadEnd(e roadnet.EdgeIndex) bool {
	for _, next := range f.graph.Out(f.graph.Edge(e).To) {
		if f.graph.Turn(e, next) == roadnet.TurnFree && drivable(f.graph.Edge(next)) {
			return false
		}
	}
	return true
}

// lastResort is for the ends of roads: any legal way on, else turning back, else anywhere at all.
func (f *Fleet) lastResort(from roadnet.EdgeIndex) roadnet.EdgeIndex {
	edge := f.graph.Edge(from)
	for _, e := range f.graph.Out(edge.To) {
		if f.graph.Turn(from, e) == roadnet.TurnFree && f.graph.Edge(e).Access.Has(roadnet.Car) {
			return e
		}
	}
	if edge.Twin != roadnet.NoEdge && f.graph.Edge(edge.Twin).Access.Has(roadnet.Car) {
		return edge.Twin
	}
	return from // the end of a one-way road that leads nowhere: the vehicle is taken back to its start
}

// report measures the vehicle's place, with noise.
func (f *Fleet) report(v *vehicle, at time.Time, dt float64) Fix {
	keep := math.Exp(-dt / driftMemoryS)
	fresh := v.sigmaM * math.Sqrt(1-keep*keep)
	v.driftE = keep*v.driftE + fresh*v.rnd.NormFloat64()
	v.driftN = keep*v.driftN + fresh*v.rnd.NormFloat64()
	place, heading := f.graph.At(v.edge, int32(v.alongM*100))
	const metresPerDegree = 111_195
	fix := Fix{
		Vehicle: v.id, Time: at, AccuracyM: math.Round(v.sigmaM * 1.5),
		SpeedMPS: math.Max(0, math.Round((v.speed+0.3*v.rnd.NormFloat64())*10)/10),
		Heading:  math.Mod(math.Round(heading+5*v.rnd.NormFloat64())+360, 360),
		Point: roadnet.Point{
			Lat: place.Lat + (v.driftN+whiteNoiseM*v.rnd.NormFloat64())/metresPerDegree,
			Lon: place.Lon + (v.driftE+whiteNoiseM*v.rnd.NormFloat64())/(metresPerDegree*math.Cos(place.Lat*math.Pi/180)),
		},
	}
	if fix.SpeedMPS < 1 {
		fix.Heading = math.Floor(360 * v.rnd.Float64()) // a receiver at rest does not know where it points
	}
	return fix
}
