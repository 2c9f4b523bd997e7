package partition

import (
	"maps"
	"reflect"
	"testing"
)

// A17: every counter has a name, and sums lose none.
func TestStatsAreComplete(t *testing.T) {
	var a, b Stats
	for i := range reflect.TypeFor[Stats]().NumField() {
		reflect.ValueOf(&a).Elem().Field(i).SetInt(int64(i + 1))
		reflect.ValueOf(&b).Elem().Field(i).SetInt(100)
	}
	sum := reflect.ValueOf(a.Plus(b))
	for i := range sum.NumField() {
		if got := sum.Field(i).Int(); got != int64(i+101) {
			t.Errorf("%s sums to %d, want %d", sum.Type().Field(i).Name, got, i+101)
		}
	}
	names := maps.Collect(a.All())
	if len(names) != sum.NumField() {
		t.Errorf("%d names for %d counters", len(names), sum.NumField())
	}
}
