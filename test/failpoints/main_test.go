//go:build failpoint

package failpoints_test

import (
	"os"
	"testing"
	"time"

	"milepost/test/stand"
)

// session is the group's session time-out: how long a process may be silent and stay an owner.
const session = 3 * time.Second

// shared is what the cells share.
var shared stand.Shared

func TestMain(m *testing.M) {
	config := stand.Config{SessionTimeout: session, Postgres: map[string]string{"max_connections": "300"}}
	os.Exit(shared.Main(m, config, "failpoint"))
}
