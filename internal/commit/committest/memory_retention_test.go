package committest_test

import (
	"testing"

	"milepost/internal/commit/committest"
)

// T1, A5: the memory store's retention passes the suite that Postgres passes.
func TestMemoryRetentionConforms(t *testing.T) {
	committest.RunRetention(t, func(*testing.T) committest.Retainers { return committest.NewMemoryStore() })
}
