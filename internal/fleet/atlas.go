package fleet

import (
	"fmt"
	"math"
	"slices"

	"milepost/internal/fleet/catalog"
	"milepost/internal/roadnet"
)

// DefaultRegion is the region of a workload that has one road map and no catalog.
const DefaultRegion = "default"

// Map is what the workload knows of a road network: its identity and its extent.
type Map struct {
	Hash                 [32]byte
	SouthWest, NorthEast roadnet.Point
}

// MapOf gives a graph's.
func MapOf(g *roadnet.Graph) Map {
	m := Map{Hash: g.Hash()}
	m.SouthWest, m.NorthEast = g.Bounds()
	return m
}

// Atlas says which region serves a place, and on which map. It is immutable.
type Atlas struct {
	version int64
	regions []catalog.Region
	maps    []Map            // of the regions
	catalog *catalog.Catalog // nil: one region, which serves its map's extent
}

// OneMap is an atlas without a catalog: one region, DefaultRegion, that serves the map's extent.
func OneMap(m Map) *Atlas {
	return &Atlas{regions: []catalog.Region{{ID: DefaultRegion}}, maps: []Map{m}}
}

// NewAtlas is the atlas of a catalog with the maps of its regions, in the catalog's order.
func NewAtlas(c *catalog.Catalog, maps []Map) (*Atlas, error) {
	if len(maps) != len(c.Regions) {
		return nil, fmt.Errorf("fleet: %d maps for %d regions", len(maps), len(c.Regions))
	}
	return &Atlas{version: c.Version, regions: c.Regions, maps: maps, catalog: c}, nil
}

// Version is the catalog's; 0 without one.
func (a *Atlas) Version() int64 { return a.version }

// pin is where a vehicle is served: it stays there while nothing of it changes (A7).
type pin struct {
	version int64
	region  string // empty: nowhere yet
	graph   []byte
}

func (a *Atlas) pinTo(n int) pin {
	return pin{version: a.version, region: a.regions[n].ID, graph: a.maps[n].Hash[:]}
}

// knows reports whether a graph is one of the atlas's.
func (a *Atlas) knows(graph []byte) bool {
	for i := range a.maps {
		if string(a.maps[i].Hash[:]) == string(graph) {
			return true
		}
	}
	return false
}

// pinned gives the number of the region that the pin names, if version, region and graph are still what they were.
func (a *Atlas) pinned(p pin) (int, bool) {
	if p.region == "" || p.version != a.version {
		return 0, false
	}
	for i := range a.regions {
		if a.regions[i].ID == p.region {
			return i, string(a.maps[i].Hash[:]) == string(p.graph)
		}
	}
	return 0, false
}

// resolve gives the number of the region that serves a place: the pin's while it may, else the cell's owner, else the overlapping one
// with the lowest id, else none.
func (a *Atlas) resolve(p pin, at roadnet.Point, marginM float64) (int, bool) {
	if a.catalog == nil {
		return 0, a.maps[0].covers(at, marginM)
	}
	cell := catalog.CellAt(at.Lon, at.Lat)
	owner, owned := a.catalog.Owner(cell)
	overlaps := a.catalog.Overlaps(cell)
	if n, ok := a.pinned(p); ok {
		if owned && owner == n {
			return n, true
		}
		if slices.Contains(overlaps, n) {
			return n, true
		}
	}
	switch {
	case owned:
		return owner, true
	case len(overlaps) > 0:
		return overlaps[0], true
	}
	return 0, false
}

// covers reports whether the point is on the map, or within the margin around it.
func (m Map) covers(p roadnet.Point, marginM float64) bool {
	sw, ne := m.SouthWest, m.NorthEast
	const metresPerDegree = 111_195
	dLat := marginM / metresPerDegree
	if p.Lat < sw.Lat-dLat || p.Lat > ne.Lat+dLat {
		return false
	}
	dLon := dLat / max(math.Cos(p.Lat*math.Pi/180), 0.01) // near the poles the margin stops growing
	if sw.Lon <= ne.Lon {
		return p.Lon >= sw.Lon-dLon && p.Lon <= ne.Lon+dLon ||
			p.Lon+360 <= ne.Lon+dLon || p.Lon-360 >= sw.Lon-dLon
	}
	return p.Lon >= sw.Lon-dLon || p.Lon <= ne.Lon+dLon // across the antimeridian
}
