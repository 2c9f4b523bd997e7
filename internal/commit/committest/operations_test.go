package committest_test

import (
	"testing"

	"milepost/internal/commit/committest"
)

// T1: the memory store's operations pass the suite that Postgres passes.
func TestMemoryOperationsConform(t *testing.T) {
	committest.RunOperations(t, func(*testing.T) committest.Operators { return committest.NewMemoryStore() })
}
