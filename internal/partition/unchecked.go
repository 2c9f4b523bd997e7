//go:build !race && !invariants

package partition

// checked says whether invariants are checked after each step.
const checked = false
