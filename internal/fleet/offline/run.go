package offline

import (
	"errors"
	"fmt"
	"io"
	"time"

	"milepost/internal/commit"
	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/partition"
	"milepost/internal/roadnet"
	"milepost/internal/stream"
	"milepost/internal/tracefile"
)

// Options say how traces are matched.
type Options struct {
	Fleet   fleet.Config // topics and group may be empty
	Matcher mapmatch.Config
	// AssumeStep is the time from one fix to the next where a file gives none; 0: such fixes are refused.
	AssumeStep time.Duration
	// Explain lets Run.Explanation say why; it takes about twice the time.
	Explain bool
}

// ErrNoTime says that a fix without time was refused: there is no step to assume.
var ErrNoTime = errors.New("the fix has no time")

// EndOfTrace is the disposition of the event that makes a vehicle's open stretch final. It stands for no observation.
const EndOfTrace = "end_of_trace"

// Sink takes what a run finds.
type Sink interface {
	// Observed takes a fix's event; seq numbers the vehicle's fixes from 0.
	Observed(seq int64, e *fleet.Event) error
	// Ended takes a vehicle's last event, EndOfTrace; in the order of the vehicles' first fixes.
	Ended(e *fleet.Event) error
	// Close writes what is left.
	Close() error
}

// Summary counts what a run did.
type Summary struct {
	Vehicles     int
	Observations int64
	Refused      int64            // rows that were no fixes, and fixes without time
	Dispositions map[string]int64 // of the observations, as they were decided at first
	Segments     int64
}

// Run is one run over any number of files.
type Run struct {
	opts     Options
	engine   *Engine
	workload *fleet.Workload
	sinks    []Sink
	order    []stream.Key
	vehicles map[stream.Key]*vehicle
	offset   int64
	summary  Summary
	why      *mapmatch.Explanation
}

// vehicle is one vehicle's state.
type vehicle struct {
	checkpoint commit.Checkpoint
	graph      [32]byte // of the open stretch
	seq        int64
	last       time.Time
}

// topic names the input in the events' identities.
const topic = "trace"

// New makes a run over a road network.
func New(g *roadnet.Graph, opts Options) (*Run, error) {
	e, err := NewEngine(OneMap(g), opts.Matcher)
	if err != nil {
		return nil, err
	}
	return e.NewRun(opts)
}

// NewRun makes a run over the engine's world; the engine is the run's until that is closed or given up. Options.Matcher does not count.
func (e *Engine) NewRun(opts Options) (*Run, error) {
	opts.Fleet.Group, opts.Fleet.MatchedTopic, opts.Fleet.DeadLetterTopic = topic, topic, topic
	w, err := fleet.New(opts.Fleet, e.world.Atlas)
	if err != nil {
		return nil, err
	}
	return &Run{
		opts: opts, engine: e, workload: w, vehicles: map[stream.Key]*vehicle{},
		summary: Summary{Dispositions: map[string]int64{}},
	}, nil
}

// AddSink adds a sink; before the first fix.
func (r *Run) AddSink(s Sink) { r.sinks = append(r.sinks, s) }

// File matches a file's fixes. refused is told of each row that is none; the good ones go on. An error is a sink's, or a
// solver's.
func (r *Run) File(in io.Reader, name string, opts tracefile.Options, refused func(*tracefile.RowError)) error {
	for fix, err := range tracefile.Read(in, name, opts) {
		if err == nil {
			err = r.Add(&fix)
			if errors.Is(err, ErrNoTime) {
				err = tracefile.NoTime(name, fix.Line)
			}
		}
		if row := (*tracefile.RowError)(nil); errors.As(err, &row) {
			r.summary.Refused++
			refused(row)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Add matches one fix.
func (r *Run) Add(f *tracefile.Fix) error {
	key := stream.Key(f.Vehicle)
	v := r.vehicles[key]
	at := f.Time
	if !f.HasTime() {
		if r.opts.AssumeStep <= 0 {
			return ErrNoTime
		}
		at = time.Unix(0, 0)
		if v != nil {
			at = v.last.Add(r.opts.AssumeStep)
		}
	}
	if v == nil {
		v = &vehicle{}
		r.vehicles[key] = v
		r.order = append(r.order, key)
	}
	at = at.UTC().Truncate(time.Microsecond)
	e, err := r.decide(key, v, f, at)
	if err != nil {
		return err
	}
	v.last = at
	r.count(v, e)
	seq := v.seq
	v.seq++
	for _, s := range r.sinks {
		if err := s.Observed(seq, e); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) decide(key stream.Key, v *vehicle, f *tracefile.Fix, at time.Time) (*fleet.Event, error) {
	o := partition.Observation{
		Key: key, Time: at,
		Identity: stream.Identity{Partition: stream.Partition{Topic: topic}, Revision: stream.Revision{Generation: 1, Offset: r.offset}},
		Value: fleet.Fix{Observation: mapmatch.Observation{
			Time: at, Point: roadnet.Point{Lon: f.Lon, Lat: f.Lat}, AccuracyM: f.AccuracyM, SpeedMPS: f.SpeedMPS, Heading: f.HeadingDeg,
		}},
	}
	r.offset++
	k := partition.KeyState{Checkpoint: v.checkpoint}
	d, err := r.solve(v, r.workload.Open(k, o))
	if err != nil {
		return nil, fmt.Errorf("match vehicle %q: %w", key, err)
	}
	e, next, err := r.workload.Apply(k, o, d)
	if err != nil {
		return nil, fmt.Errorf("match vehicle %q: %w", key, err)
	}
	v.checkpoint = next
	return &e, nil
}

// solve decides as a worker does: by itself, or by the solver of the region's graph.
func (r *Run) solve(v *vehicle, o partition.Opening) (partition.Decision, error) {
	r.why = nil
	if o.Local != nil {
		return *o.Local, nil
	}
	asked, err := fleet.DecodeRequest(o.Request)
	if err != nil {
		return partition.Decision{}, err
	}
	at, err := r.engine.at(asked.Graph)
	if err != nil {
		return partition.Decision{}, err
	}
	if r.opts.Explain {
		if r.why, err = at.explain(asked); err != nil {
			return partition.Decision{}, err
		}
	}
	v.graph = asked.Graph
	return at.solver.Solve(o.Request)
}

// Explanation says why the newest fix was judged as it was; nil where no matcher was asked: its time goes back, or it is off the map.
func (r *Run) Explanation() *mapmatch.Explanation { return r.why }

func (r *Run) count(v *vehicle, e *fleet.Event) {
	r.summary.Observations++
	r.summary.Dispositions[e.Disposition]++
	if v.seq == 0 || e.Reset != nil {
		r.summary.Segments++
	}
}

// Settle gives what would be final of a vehicle if its trace ended now; nil: nothing is open.
func (r *Run) Settle(key stream.Key) (*fleet.Final, error) {
	v := r.vehicles[key]
	if v == nil || v.graph == [32]byte{} {
		return nil, nil
	}
	at, err := r.engine.at(v.graph)
	if err != nil {
		return nil, err
	}
	f, err := r.workload.End(at.solver, v.checkpoint)
	if err != nil {
		return nil, fmt.Errorf("end the trace of vehicle %q: %w", key, err)
	}
	return f, nil
}

// Close makes everything final, closes the sinks and gives the figures.
func (r *Run) Close() (Summary, error) {
	for _, key := range r.order {
		v := r.vehicles[key]
		f, err := r.Settle(key)
		if err != nil {
			return r.summary, err
		}
		e := &fleet.Event{
			Schema: fleet.EventSchema, Vehicle: string(key), Segment: v.checkpoint.Segment, Revision: v.checkpoint.Revision.String(),
			Time: v.last, Disposition: EndOfTrace, Final: f,
		}
		for _, s := range r.sinks {
			if err := s.Ended(e); err != nil {
				return r.summary, err
			}
		}
	}
	for _, s := range r.sinks {
		if err := s.Close(); err != nil {
			return r.summary, err
		}
	}
	r.summary.Vehicles = len(r.order)
	return r.summary, nil
}
