package ingest

import (
	"errors"
	"time"
)

// Pace says when records are due. It is pure.
type Pace struct {
	Rate  float64 // records a second; 0: not paced by count
	Speed float64 // event time over real time; 0: not paced by time
}

// Validate refuses what makes no pace.
func (p Pace) Validate() error {
	switch {
	case !(p.Rate >= 0) || p.Rate > 1e9:
		return errors.New("rate: want records a second, 0 for as fast as it goes")
	case !(p.Speed >= 0) || p.Speed > 1e6:
		return errors.New("speed: want a factor of real time, such as 1 or 10")
	case p.Rate > 0 && p.Speed > 0:
		return errors.New("rate and speed exclude each other")
	}
	return nil
}

// Due is when record number n, whose event time is so far after the first one's, is due after the start.
func (p Pace) Due(n int64, event time.Duration) time.Duration {
	switch {
	case p.Rate > 0:
		return time.Duration(float64(n) / p.Rate * float64(time.Second))
	case p.Speed > 0:
		return time.Duration(float64(event) / p.Speed)
	}
	return 0
}
