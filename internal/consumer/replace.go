package consumer

import "milepost/internal/partition"

// Replace puts another workload into force, that of another catalog: for the machines that run, at their next input, and for all that
// come. Jobs that are out go on under the former one.
func (c *Consumer) Replace(w partition.Workload) {
	// First for those that come: whoever begins after this begins with it, and whoever has begun is in the list below.
	c.workload.Store(&w)
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sl := range s.assigned {
		if w := sl.worker; w != nil {
			w.mail.post(partition.Replaced{Workload: *c.workload.Load()})
		}
	}
}

// share joins the worker to the process's admission; nil without one.
func (w *worker) share() *partition.Share {
	if c := w.s.c.deps.Admission; c != nil {
		mail := w.mail
		return c.Join(func() { mail.post(partition.Admitted{}) })
	}
	return nil
}
