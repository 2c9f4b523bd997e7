package doctor_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/doctor"
)

// D1: a good finding has no remedy, any other keeps it.
func TestExamination(t *testing.T) {
	e := doctor.Examination{Area: "a"}
	e.OK("one", "%d", 1)
	e.Check("two", true, doctor.Fail, "mend it", "good")
	e.Check("three", false, doctor.Warn, "mend it", "bad")
	e.Fail("four", "mend it", "worse")
	want := []doctor.Finding{
		{Area: "a", Name: "one", State: doctor.OK, Found: "1"},
		{Area: "a", Name: "two", State: doctor.OK, Found: "good"},
		{Area: "a", Name: "three", State: doctor.Warn, Found: "bad", Remedy: "mend it"},
		{Area: "a", Name: "four", State: doctor.Fail, Found: "worse", Remedy: "mend it"},
	}
	if diff := cmp.Diff(want, e.Findings); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if n := doctor.Count(e.Findings, doctor.OK); n != 2 {
		t.Errorf("%d are ok, want 2", n)
	}
}
