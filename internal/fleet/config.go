package fleet

import (
	"errors"
	"fmt"
	"time"
)

// Config holds the fleet workload's settings.
type Config struct {
	Group           string // the consumer group's name, for the outputs' ce_source
	MatchedTopic    string
	DeadLetterTopic string
	// MaxAge is how far event time may be from the record's own Kafka timestamp, either way; 0: any (A3, M22).
	MaxAge time.Duration
	// Geometry is how spans in events have their lines; empty: Coordinates.
	Geometry Geometry
	// Gap is the pause between two served observations beyond which a new segment begins.
	Gap time.Duration
	// A jump is a teleport when it is longer than TeleportM and than MaxSpeedMPS could have driven in its time.
	// Shorter impossible ones are the matcher's to judge: an outlier there costs one observation, a reset the segment.
	TeleportM   float64 // metres
	MaxSpeedMPS float64
	// CoverageMarginM is how far outside the map's bounds an observation is still served where there is no catalog, metres.
	CoverageMarginM float64
	MaxValueBytes   int // of a raw value
	MaxKeyBytes     int // of a record key
}

// DefaultConfig gives the defaults; the topics and the group must be set.
func DefaultConfig() Config {
	return Config{
		Gap: 300 * time.Second, TeleportM: 20_000, MaxSpeedMPS: 55, CoverageMarginM: 100,
		MaxValueBytes: 64 << 10, MaxKeyBytes: 512,
	}
}

// Validate reports every setting that is out of range.
func (c Config) Validate() error {
	var errs []error
	for _, s := range []struct{ name, got string }{
		{"group", c.Group}, {"matched topic", c.MatchedTopic}, {"dead letter topic", c.DeadLetterTopic},
	} {
		if s.got == "" {
			errs = append(errs, fmt.Errorf("fleet: %s is empty", s.name))
		}
	}
	for _, l := range []struct {
		name     string
		got, min float64
	}{
		{"max age (seconds)", c.MaxAge.Seconds(), 0},
		{"gap (seconds)", c.Gap.Seconds(), 1},
		{"teleport (metres)", c.TeleportM, 1},
		{"max speed (metres a second)", c.MaxSpeedMPS, 1},
		{"coverage margin (metres)", c.CoverageMarginM, 0},
		{"max value bytes", float64(c.MaxValueBytes), 256},
		{"max key bytes", float64(c.MaxKeyBytes), 1},
	} {
		if !(l.got >= l.min) {
			errs = append(errs, fmt.Errorf("fleet: %s is %v, must be at least %v", l.name, l.got, l.min))
		}
	}
	if c.Geometry != "" {
		if _, err := ParseGeometry(string(c.Geometry)); err != nil {
			errs = append(errs, fmt.Errorf("fleet: geometry: %w", err))
		}
	}
	return errors.Join(errs...)
}
