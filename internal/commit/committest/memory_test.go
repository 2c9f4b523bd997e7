package committest_test

import (
	"testing"

	"milepost/internal/commit/committest"
)

// T1: the memory store passes the suite that Postgres passes.
func TestMemoryStoreConforms(t *testing.T) {
	committest.Run(t, func(*testing.T) committest.Stores { return committest.NewMemoryStore() })
	committest.RunFull(t, func(*testing.T) committest.Stores {
		s := committest.NewMemoryStore()
		s.QuarantineRoom = 1
		return s
	})
}
