package roadnet

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

//go:embed profiles.toml
var defaultProfiles []byte

// Profiles say how each class of vehicles reads the tags of OSM. They are read-only.
type Profiles struct{ of [numVehicles]profile }

// profile is one class's rules. See profiles.toml for what the fields mean.
type profile struct {
	given    bool
	access   []string
	allowed  []string
	private  []string
	oneway   []string
	opposite []string
	turns    []string
	never    []Tag
	posted   bool
	maxSpeed uint8
	roads    [numClasses][2]road // the second one is the slip road's
	barriers map[string]barrier
}

type road struct {
	listed bool
	speed  uint8
	access access // what holds where no tag speaks
}

// DefaultProfiles are the ones that come with the program.
func DefaultProfiles() *Profiles {
	p, err := ParseProfiles("profiles.toml", defaultProfiles)
	if err != nil {
		panic(fmt.Sprintf("the profiles that come with the program: %v", err))
	}
	return p
}

// complete takes the default rules for the classes that have none.
func (p *Profiles) complete() {
	for v := range p.of {
		if !p.of[v].given {
			p.of[v] = DefaultProfiles().of[v]
		}
	}
}

// DefaultProfilesTOML is the text of DefaultProfiles, to begin a file of one's own with.
func DefaultProfilesTOML() []byte { return slices.Clone(defaultProfiles) }

// digest names what the profiles of some classes say, however the file is written.
func (p *Profiles) digest(set Vehicles) string {
	h := sha256.New()
	for v := range Vehicle(numVehicles) {
		if !set.Has(v) {
			continue
		}
		q := p.of[v]
		names := make([]string, 0, len(q.barriers))
		for name, b := range q.barriers {
			names = append(names, fmt.Sprint(name, "=", uint8(b)))
		}
		slices.Sort(names)
		q.barriers = nil
		for _, set := range []*[]string{&q.allowed, &q.private} { // of which the order means nothing
			*set = slices.Clone(*set)
			slices.Sort(*set)
		}
		_, _ = fmt.Fprintf(h, "%s %+v %s\n", v, q, strings.Join(names, " "))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// pace is the part of a profile that a graph keeps.
func (p *profile) pace() (q pace) {
	q.Max, q.Posted = p.maxSpeed, p.posted
	for c := range p.roads {
		for link := range p.roads[c] {
			q.Roads[c][link] = p.roads[c][link].speed
		}
	}
	return q
}
