package devstack

import "errors"

// ErrLeftOut is returned by what build tag nodev leaves out of a release
// build: the broker in process and the embedded Postgres.
var ErrLeftOut = errors.New("this build has no embedded stack (built with tag nodev): give --brokers and --dsn")
