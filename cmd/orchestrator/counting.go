package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"milepost/internal/consumer"
	"milepost/internal/counter"
	"milepost/internal/partition"
	"milepost/internal/publish"
)

// The workloads.
const (
	workloadFleet   = "fleet"
	workloadCounter = "counter"
)

var _ partition.Workload = (*counter.Workload)(nil)

// countingOptions are the settings of the counter workload.
type countingOptions struct{ solveTime time.Duration }

func (o *countingOptions) flags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.solveTime, "counter-solve-time", 0, "with --workload counter: how long a solver takes over each record; 0: there is none")
}

// wrongCounting says what does not go with the counter workload.
func (o *serviceOptions) wrongCounting() []error {
	var problems []error
	if o.counting.solveTime < 0 {
		problems = append(problems, fmt.Errorf("--counter-solve-time is %s, must not be negative", o.counting.solveTime))
	}
	if o.workload != workloadCounter {
		return problems
	}
	if o.roadMap+o.catalog+o.profiles != "" {
		problems = append(problems, errors.New("--map, --catalog and --profiles are of --workload fleet"))
	}
	if o.solving.solver != solveInProcess {
		problems = append(problems, errors.New("--solver remote is of --workload fleet"))
	}
	return problems
}

// counter makes the counter workload.
func (o *serviceOptions) counter() (*counter.Workload, error) {
	topics := publish.Topics{Prefix: o.prefix}
	return counter.New(counter.Config{
		Group: o.group, Topic: topics.Matched(), DeadLetterTopic: topics.DeadLetter(), SolveTime: o.counting.solveTime,
	})
}

// solver is what decides the workload's jobs in this process.
func (s *service) solver() consumer.Solver {
	if s.opts.workload == workloadCounter {
		return idler{s.opts.counting.solveTime}
	}
	return solver{s.pools}
}

// idler solves by waiting. One that is still waiting when the worker has drained holds nothing up: its answer goes nowhere.
type idler struct{ wait time.Duration }

func (i idler) Submit(_ partition.Dispatch, done func(partition.Decision, error)) bool {
	time.AfterFunc(i.wait, func() { done(partition.Decision{Kind: partition.Solved}, nil) })
	return true
}
