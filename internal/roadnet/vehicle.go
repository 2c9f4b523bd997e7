package roadnet

import "strings"

// Vehicle is a class of road users, with rules and speeds of its own.
type Vehicle uint8

// The classes of vehicles. The zero value is a car.
const (
	Car Vehicle = iota
	Truck
	Bus
	Bicycle
	Foot

	numVehicles = 5
)

// String returns the name that profiles and flags use.
func (v Vehicle) String() string {
	switch v {
	case Car:
		return "car"
	case Truck:
		return "truck"
	case Bus:
		return "bus"
	case Bicycle:
		return "bicycle"
	case Foot:
		return "foot"
	default:
		return "unknown"
	}
}

// ParseVehicle reads a name; not ok: there is no such class.
func ParseVehicle(name string) (v Vehicle, ok bool) {
	for v := range Vehicle(numVehicles) {
		if v.String() == name {
			return v, true
		}
	}
	return 0, false
}

// Vehicles is a set of classes.
type Vehicles uint8

// SetOf makes a set.
func SetOf(vs ...Vehicle) (s Vehicles) {
	for _, v := range vs {
		s |= v.bit()
	}
	return s
}

// AllVehicles is the set of every class.
func AllVehicles() Vehicles { return 1<<numVehicles - 1 }

func (v Vehicle) bit() Vehicles {
	if v >= numVehicles {
		return 0
	}
	return 1 << v
}

// Has says whether a class is in the set.
func (s Vehicles) Has(v Vehicle) bool { return s&v.bit() != 0 }

// first is the lowest class of a set that is not empty.
func (s Vehicles) first() Vehicle {
	for v := range Vehicle(numVehicles) {
		if s.Has(v) {
			return v
		}
	}
	return 0
}

// String lists the classes: "car,bus".
func (s Vehicles) String() string {
	var names []string
	for v := range Vehicle(numVehicles) {
		if s.Has(v) {
			names = append(names, v.String())
		}
	}
	return strings.Join(names, ",")
}

// View is the part of a graph that a question is about: the roads of one class of vehicles. The zero View is a car's, along the rules.
type View struct {
	Vehicle    Vehicle
	Contraflow bool // also against one-way streets, where the graph has edges for that (see ImportOptions)
}

// masks are what an edge's Access and Contra are tested with.
func (v View) masks() (access, contra Vehicles) {
	access = v.Vehicle.bit()
	if v.Contraflow {
		contra = access
	}
	return access, contra
}

// Passable says whether an edge is part of the view.
func (g *Graph) Passable(e EdgeIndex, v View) bool {
	access, contra := v.masks()
	return g.edges[e].passable(access, contra)
}

func (e *Edge) passable(access, contra Vehicles) bool { return e.Access&access|e.Contra&contra != 0 }

// Vehicles are the classes that the graph was made for.
func (g *Graph) Vehicles() Vehicles { return g.vehicles }

// Contraflow says whether one-way streets have edges against their direction.
func (g *Graph) Contraflow() bool { return g.contraflow }

// Speed is the free-flow speed of a class on an edge in km/h, at least 1: what is posted, where the class goes by that, else what its
// profile gives for the class of road, bounded by what is posted.
func (g *Graph) Speed(e EdgeIndex, v Vehicle) uint8 {
	edge, p := &g.edges[e], &g.pace[min(v, numVehicles-1)]
	link := 0
	if edge.Flags&FlagLink != 0 {
		link = 1
	}
	speed := p.Roads[min(edge.Class, numClasses-1)][link]
	if edge.Class == ClassFerry { // which takes its passengers along at its own pace
		if edge.Flags&FlagPosted != 0 {
			speed = edge.SpeedKMH
		}
		return max(speed, 1)
	}
	switch {
	case edge.Flags&FlagPosted == 0:
	case p.Posted || speed == 0:
		speed = edge.SpeedKMH
	default:
		speed = min(speed, edge.SpeedKMH)
	}
	return max(min(speed, p.Max), 1)
}

// pace is what a graph keeps of a profile: speeds in km/h.
type pace struct {
	Max    uint8
	Posted bool // goes by posted limits
	Roads  [numClasses][2]uint8
}
