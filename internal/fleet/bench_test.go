package fleet_test

import (
	"testing"

	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/partition"
	"milepost/internal/roadnet/roadnettest"
	"milepost/internal/stream"
)

// BenchmarkObservation is what the workload and its solver cost an observation on a straight road, without broker and database.
func BenchmarkObservation(b *testing.B) {
	m := roadnettest.Parse(b, roads)
	w, solver := workload(b, config(), fleet.MapOf(m.Graph)), newSolver(b, m.Graph)
	k := partition.KeyState{Epoch: 1}
	values := make([][]byte, 500)
	for i := range values {
		fix := fleet.Fix{Observation: mapmatch.Observation{Time: seconds(float64(i)), Point: m.Point(15*float64(i), 3), AccuracyM: 5, SpeedMPS: 15, Heading: 90}}
		values[i] = fleet.AppendFix(nil, &fix)
	}
	b.ReportAllocs()
	n, bytes := 0, 0
	for b.Loop() {
		if n%len(values) == 0 {
			k.Checkpoint.State, k.Checkpoint.Revision = nil, stream.Revision{}
		}
		r := &stream.Record{Key: []byte("v"), Offset: int64(n), Value: values[n%len(values)]}
		o, err := w.Decode(r)
		if err != nil {
			b.Fatal(err)
		}
		o.Identity.Revision = stream.Revision{Generation: 1, Offset: int64(n)}
		d, err := solver.Solve(w.Open(k, o).Request)
		if err != nil {
			b.Fatal(err)
		}
		plan, err := w.Plan(k, o, d)
		if err != nil {
			b.Fatal(err)
		}
		k.Checkpoint = plan.Next
		n++
		bytes += len(plan.Outputs[0].Value)
	}
	b.ReportMetric(float64(bytes)/float64(n), "output-B/op")
}
