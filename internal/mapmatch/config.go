package mapmatch

import (
	"fmt"
	"hash/crc32"
	"time"

	"milepost/internal/roadnet"
)

// Config holds the matcher's settings. States made under one configuration are refused under another.
type Config struct {
	Vehicle          roadnet.Vehicle // whose roads count
	Candidates       int             // a layer: places on the network that one observation may have been at, 2 to 16
	MinRadiusM       float64         // metres: within which candidates are sought, whatever the accuracy
	MaxRadiusM       float64         // metres: the same, at most
	SparseRadiusM    float64         // metres: the same, at least, where no observation came shortly before
	Sparse           time.Duration   // without one, for that
	DefaultAccuracyM float64         // metres: of an observation that gives none
	MinSigmaM        float64         // metres: the least standard deviation that is believed
	MaxSigmaM        float64         // metres: the greatest
	TailSigmas       float64         // beyond this many standard deviations a distance costs linearly, not by its square: errors last
	DetourM          float64         // metres by which a route may differ from the straight distance for one nat, at once
	DetourMPS        float64         // and more for each of the first 15 seconds between the two
	DetourLateMPS    float64         // and more for each further second, to a minute
	SpacingM         float64         // metres between layers, at least: what lies between them gets its place from theirs
	HeadingNats      float64         // price of a heading across the road, nats; twice that against it
	HeadingMinMPS    float64         // below this speed a heading is noise
	UTurnM           float64         // price of a U-turn, metres of route
	BanM             float64         // price of a banned turn, metres of route
	PrivateM         float64         // price of entering a private road, metres of route
	ContraflowM      float64         // price of entering a one-way street against its direction, metres of route
	ContraflowShare  float64         // price of going on there, metres a metre
	ContraflowNats   float64         // price of beginning a stretch there, nats; above the beam: never
	SlowShare        float64         // price of a road without speed, metres a metre; of one of 90 km/h nothing
	IslandNats       float64         // price of beginning a stretch on a road that leads nowhere else, nats
	BeginNats        float64         // price of beginning one just before a fork, within two sigma, nats
	EndNats          float64         // price of ending one just past a node, within two sigma, nats
	OutlierNats      float64         // what leaving out an observation has to gain for it to be an outlier, nats
	FerryNats        float64         // price of each observation on a ferry, nats
	MaxSpeedMPS      float64         // no vehicle is faster
	BeamNats         float64         // candidates this much worse than the best are given up
	Layers           int             // that may wait for finality, 3 to 40
	Window           time.Duration   // of event time that may wait for finality
	Away             time.Duration   // off the road, at least, for the match to break
	Gap              time.Duration   // without observation: longer ones break the match
}

// DefaultConfig returns the settings that the figures of the evaluation were measured with.
func DefaultConfig() Config {
	return Config{
		Candidates: 16, MinRadiusM: 35, MaxRadiusM: 100, SparseRadiusM: 45, Sparse: 20 * time.Second, DefaultAccuracyM: 8, MinSigmaM: 6, MaxSigmaM: 30,
		TailSigmas: 1.5, DetourM: 3, DetourMPS: 0.45, DetourLateMPS: 0.75, SpacingM: 10,
		HeadingNats: 5, HeadingMinMPS: 3, UTurnM: 50, BanM: 150, PrivateM: 30, ContraflowM: 200, ContraflowShare: 3, ContraflowNats: 14, SlowShare: 0.2,
		IslandNats: 2, BeginNats: 0.5, EndNats: 2, OutlierNats: 16, FerryNats: 1.5,
		MaxSpeedMPS: 55, BeamNats: 15,
		Layers: 40, Window: 120 * time.Second, Away: 20 * time.Second, Gap: 300 * time.Second,
	}
}

// Validate checks every setting against its limits.
func (c Config) Validate() error {
	for _, l := range []struct {
		name      string
		v, lo, hi float64
	}{
		{"candidates", float64(c.Candidates), 2, maxCands},
		{"minimum radius (m)", c.MinRadiusM, 1, 1000},
		{"maximum radius (m)", c.MaxRadiusM, c.MinRadiusM, 1000},
		{"sparse radius (m)", c.SparseRadiusM, 1, c.MaxRadiusM},
		{"sparse (s)", c.Sparse.Seconds(), 0, 3600},
		{"default accuracy (m)", c.DefaultAccuracyM, 0.1, 1000},
		{"minimum sigma (m)", c.MinSigmaM, 0.5, 100},
		{"maximum sigma (m)", c.MaxSigmaM, c.MinSigmaM, 300},
		{"tail (sigmas)", c.TailSigmas, 1, 100},
		{"detour (m)", c.DetourM, 0.1, 1000},
		{"detour (m/s)", c.DetourMPS, 0, 100},
		{"late detour (m/s)", c.DetourLateMPS, 0, 100},
		{"spacing of layers (m)", c.SpacingM, 0, 100},
		{"heading price (nats)", c.HeadingNats, 0, 100},
		{"heading minimum speed (m/s)", c.HeadingMinMPS, 0, 100},
		{"u-turn price (m)", c.UTurnM, 0, 10_000},
		{"ban price (m)", c.BanM, 0, 10_000},
		{"private price (m)", c.PrivateM, 0, 10_000},
		{"contraflow price (m)", c.ContraflowM, 0, 10_000},
		{"contraflow price (share)", c.ContraflowShare, 0, 100},
		{"contraflow price (nats)", c.ContraflowNats, 0, 1000},
		{"slow roads' price (share)", c.SlowShare, 0, 10},
		{"island price (nats)", c.IslandNats, 0, 1000},
		{"price of beginning before a fork (nats)", c.BeginNats, 0, 1000},
		{"price of ending past a node (nats)", c.EndNats, 0, 1000},
		{"outlier (nats)", c.OutlierNats, 0, 1000},
		{"ferry price (nats)", c.FerryNats, 0, 1000},
		{"maximum speed (m/s)", c.MaxSpeedMPS, 1, 300},
		{"beam (nats)", c.BeamNats, 1, 1000},
		{"layers", float64(c.Layers), 3, maxLayers},
		{"window (s)", c.Window.Seconds(), 1, 3600},
		{"away (s)", c.Away.Seconds(), 0, 3600},
		{"gap (s)", c.Gap.Seconds(), 1, 3600},
	} {
		if !(l.v >= l.lo && l.v <= l.hi) { // written so that NaN fails
			return fmt.Errorf("%s %g: want %g to %g", l.name, l.v, l.lo, l.hi)
		}
	}
	if !roadnet.AllVehicles().Has(c.Vehicle) {
		return fmt.Errorf("vehicle %d: there is no such class", c.Vehicle)
	}
	return nil
}

// hash names the configuration in states. Its text changes whenever a setting or this package's model does.
func (c Config) hash() uint32 {
	return crc32.Checksum(fmt.Appendf(nil, "model 4 %+v", c), crc32.MakeTable(crc32.Castagnoli))
}

// limits are the settings in the units that costs are computed in: cm, cm/s, microseconds, 1/1000 nat.
type limits struct {
	candidates, layers           int
	minRadius, maxRadius         int32
	sparseRadius                 int32
	defaultSigma, minSig, maxSig int32
	headingMin                   int32
	tail                         int64 // 1/1000 sigma
	detour                       int64 // cm
	detourRate, detourLate       int64 // cm/s
	spacing                      int64
	penalty                      roadnet.Penalties
	contraflow, island, ferry    int32 // 1/1000 nat
	begin, end, outlier          int32 // 1/1000 nat
	maxSpeed                     int64
	beam                         int32
	window, gap, away, sparse    int64
	headingCost                  [181]int32 // by degrees between road and heading
}
