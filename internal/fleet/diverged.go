package fleet

// Diverged gives a vehicle's state when what was published cannot be decided again to the same bytes: another map or another catalog
// decides now, so the next commit announces a reset (graph change). Of a state that cannot be read the reset is state lost.
func (w *Workload) Diverged(state []byte) []byte { return WithPendingReset(state, ResetGraphChange) }
