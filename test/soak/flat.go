package soak

import (
	"fmt"
	"math"
	"slices"
)

// Series is one thing that was sampled. Values that could not be read are NaN.
type Series struct {
	Name, Unit string
	Values     []float64
	// Slack is what the series may grow by over the whole time, in its unit; a tenth of its median is allowed in any case.
	Slack float64
	// Level: for information only, such as a lag that faults make.
	Level bool
}

// Judgement says how a series went after the warm-up.
type Judgement struct {
	Median, Growth float64 // Growth: of the trend over the time, in the series' unit
	Allowed        float64
	Flat           bool
}

// Judge takes the trend as the median of the slopes between all pairs of samples (Theil and Sen): a fault's spike moves it little.
func (s Series) Judge(minutes []float64, warm float64) Judgement {
	var x, y []float64
	for i, v := range s.Values {
		if minutes[i] >= warm && !math.IsNaN(v) {
			x, y = append(x, minutes[i]), append(y, v)
		}
	}
	if len(y) < 10 {
		return Judgement{}
	}
	var slopes []float64
	step := max(1, len(y)/400) // some 80,000 pairs are enough
	for i := 0; i < len(y); i += step {
		for k := i + step; k < len(y); k += step {
			slopes = append(slopes, (y[k]-y[i])/(x[k]-x[i]))
		}
	}
	j := Judgement{Median: median(y), Growth: median(slopes) * (x[len(x)-1] - x[0])}
	j.Allowed = max(s.Slack, j.Median/10)
	j.Flat = j.Growth <= j.Allowed
	return j
}

func median(v []float64) float64 {
	sorted := slices.Sorted(slices.Values(v))
	return sorted[len(sorted)/2]
}

// String tells the judgement.
func (j Judgement) String() string {
	word := "flat"
	if !j.Flat {
		word = "GROWS"
	}
	return fmt.Sprintf("%-5s  median %.4g, trend %+.3g over the time, allowed %.3g", word, j.Median, j.Growth, j.Allowed)
}
