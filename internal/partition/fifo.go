package partition

// fifo is a queue on a slice that gives its room back as it moves on.
type fifo[T any] struct {
	members []T
	first   int
}

func (q *fifo[T]) len() int { return len(q.members) - q.first }

func (q *fifo[T]) push(m T) { q.members = append(q.members, m) }

func (q *fifo[T]) pop() (m T, ok bool) {
	if q.len() == 0 {
		return m, false
	}
	m = q.members[q.first]
	var zero T
	q.members[q.first] = zero
	q.first++
	// The members that are left are moved once for each time that as many have been taken.
	if q.first >= 64 && q.first*2 >= len(q.members) {
		n := copy(q.members, q.members[q.first:])
		clear(q.members[n:])
		q.members, q.first = q.members[:n], 0
	}
	return m, true
}

// at gives the member at index i, 0 the first.
func (q *fifo[T]) at(i int) *T { return &q.members[q.first+i] }
