package publish

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
)

// A7, F24, F29: a region's requests get as many partitions as the catalog gives it lanes, more when it gives more, and never fewer; without
// lanes twelve at least. Where topics may not be made, a region with more lanes than partitions is refused with what to do.
func TestEnsureSolveTopics(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		spec := TopicsSpec{Topics: r.topics, Raw: r.raw, Create: true}
		ensure := func(spec TopicsSpec, regions ...SolveRegion) (map[string]int32, error) {
			return EnsureSolveTopics(r.ctx(), r.admin, spec, regions)
		}
		check := spec
		check.Create = false
		if _, err := ensure(check, SolveRegion{ID: "north", Lanes: 3}); err == nil || !strings.Contains(err.Error(), "--topics create") {
			t.Errorf("missing topics: %v", err)
		}
		for _, c := range []struct {
			regions []SolveRegion
			want    map[string]int32
		}{
			{[]SolveRegion{{"north", 3}, {"south", 0}}, map[string]int32{"north": 3, "south": fewestRequestPartitions}},
			{[]SolveRegion{{"north", 3}, {"south", 0}}, map[string]int32{"north": 3, "south": fewestRequestPartitions}}, // again
			{[]SolveRegion{{"north", 5}, {"south", 4}}, map[string]int32{"north": 5, "south": fewestRequestPartitions}},
			{[]SolveRegion{{"north", 2}}, map[string]int32{"north": 5}},
		} {
			got, err := ensure(spec, c.regions...)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%+v (-want +got):\n%s", c.regions, d)
			}
		}
		if _, err := ensure(check, SolveRegion{ID: "north", Lanes: 5}); err != nil {
			t.Error(err)
		}
		var te *TopicError
		_, err := ensure(check, SolveRegion{ID: "north", Lanes: 6})
		if !errors.As(err, &te) || te.Topic != r.topics.Solve("north") || te.Found != "5" || !strings.Contains(te.Wanted, "at least 6") {
			t.Errorf("more lanes than partitions: %v", err)
		}
		// Replies are read by partition of the raw topic: other numbers are refused, not mended.
		if _, err := kadm.NewClient(r.admin).CreatePartitions(r.ctx(), 1, r.topics.SolveReplies()); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool {
			_, err = ensure(spec, SolveRegion{ID: "north"})
			return err != nil
		})
		if !errors.As(err, &te) || te.Topic != r.topics.SolveReplies() {
			t.Errorf("another number of replies' partitions: %v", err)
		}
	})
}
