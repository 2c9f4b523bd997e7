package main

import (
	"milepost/internal/counter"
	"milepost/internal/fleet"
)

// tail gives what the workload keeps of a state that retention lets go of.
func (o *serviceOptions) tail() func(state []byte) []byte {
	if o.workload == workloadCounter {
		return counter.Tail
	}
	return fleet.Tail
}
