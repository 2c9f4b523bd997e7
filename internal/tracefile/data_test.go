package tracefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"milepost/internal/tracefile"
)

// TestRealTraces proves that every trace file of the data set that holds points reads whole, those with other column names through a
// mapping (issue 3, "Must hold"): no row is refused and none is lost.
func TestRealTraces(t *testing.T) {
	root := os.Getenv("MILEPOST_DATA")
	if root == "" {
		t.Skip("MILEPOST_DATA is not set: make it the folder of maps and traces that docs/matcher.md describes")
	}
	for _, c := range []struct {
		file, columns   string
		fixes, vehicles int
		timed           bool
	}{
		{"traces/barefoot/x0001-001.json", "vehicle=id", 1194, 1, true},
		{"traces/fcd-hof/points.csv", "vehicle=id,point=geometry", 9645, 175, true},
		{"traces/fmm/gps.csv", "vehicle=id,lon=x,lat=y", 17, 3, false},
		{"traces/fmm/gps_timestamps.csv", "vehicle=id,lon=x,lat=y,t_s=timestamp", 17, 3, true},
		{"traces/fmm/gps.csv", "", 17, 3, false},
		{"traces/fmm/gps_timestamps.csv", "", 17, 3, true},
		{"traces/fmm/trips.csv", "", 17, 3, false},
		{"traces/graphhopper/andorra_for_map_matching.gpx", "", 21, 1, false},
		{"traces/graphhopper/issue-13.gpx", "", 29, 1, true},
		{"traces/graphhopper/issue-70.gpx", "", 17, 1, true},
		{"traces/graphhopper/test1.gpx", "", 264, 1, true},
		{"traces/graphhopper/test2_no_millis.gpx", "", 3, 1, false},
		{"traces/graphhopper/tour2-with-loop.gpx", "", 12, 1, true},
		{"traces/graphhopper/tour3-with-long-edge.gpx", "", 7, 1, true},
		{"traces/graphhopper/tour4-with-uturn.gpx", "", 5, 1, true},
		{"traces/leuven/route.gpx", "", 65, 1, false},
		{"traces/mappymatch/sample_trace_1.csv", "lat=latitude,lon=longitude", 1053, 1, false},
		{"traces/mappymatch/sample_trace_3.csv", "lat=latitude,lon=longitude", 1466, 1, false},
		{"traces/mappymatch/test_trace.gpx", "", 778, 1, false},
		{"traces/mappymatch/test_trace_stationary_points.geojson", "", 20, 1, false},
		{"traces/newson-krumm/gps_data.txt.csv", "lat=Latitude,lon=Longitude,time=Date (UTC)+Time (UTC)", 7531, 1, true},
		{"traces/osrm/berlin_gps_traces.csv.gz", "vehicle=TrackID,lat=Latitude,lon=Longitude,time=Time", 75000, 132, false},
		{"traces/pgmapmatch/testtrace_36.gpx", "", 696, 1, true},
		{"traces/pgmapmatch/testtrace_36sparse.gpx", "", 13, 1, true},
		{"traces/pgmapmatch/testtrace_36Uturns.gpx", "", 697, 1, true},
		{"synthetic/newark_5s.csv", "", 3998, 40, true},
		{"synthetic/dover_1s.csv", "", 7438, 20, true},
		{"synthetic/dover_30s.csv", "", 1006, 60, true},
		{"synthetic/andorra_10s.csv", "", 2997, 40, true},
	} {
		t.Run(filepath.Base(c.file), func(t *testing.T) {
			f, err := os.Open(filepath.Join(root, c.file))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			columns, err := tracefile.ParseColumns(c.columns)
			if err != nil {
				t.Fatal(err)
			}
			fixes, timed, vehicles := 0, 0, map[string]bool{}
			for fix, err := range tracefile.Read(f, c.file, tracefile.Options{Columns: columns}) {
				if err != nil {
					t.Fatalf("row refused: %v", err)
				}
				fixes++
				vehicles[fix.Vehicle] = true
				if fix.HasTime() {
					timed++
				}
			}
			if fixes != c.fixes || len(vehicles) != c.vehicles {
				t.Errorf("got %d fixes of %d vehicles, want %d of %d", fixes, len(vehicles), c.fixes, c.vehicles)
			}
			if want := map[bool]int{true: fixes}[c.timed]; timed != want {
				t.Errorf("%d of %d fixes have times, want %d", timed, fixes, want)
			}
		})
	}
	t.Run("no_trkpt.gpx", func(t *testing.T) {
		f, err := os.Open(filepath.Join(root, "traces/graphhopper/no_trkpt.gpx"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		n := 0
		for _, err := range tracefile.Read(f, "no_trkpt.gpx", tracefile.Options{}) {
			n++
			var row *tracefile.RowError
			if !errors.As(err, &row) || !row.Fatal {
				t.Errorf("got %v, want one fatal error", err)
			}
		}
		if n != 1 {
			t.Errorf("got %d rows, want one error", n)
		}
	})
}
