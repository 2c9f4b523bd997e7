package partition

// heap is a binary heap whose members know their place, so that any of them can be taken out or moved.
type heap[T any] struct {
	members []T
	less    func(a, b T) bool
	place   func(m T) *int // -1 outside of the heap
}

// top gives the least member.
func (h *heap[T]) top() (m T, ok bool) {
	if len(h.members) == 0 {
		return m, false
	}
	return h.members[0], true
}

// fix puts a member where it belongs, adding it when it is not there.
func (h *heap[T]) fix(m T) {
	p := h.place(m)
	if *p < 0 {
		*p = len(h.members)
		h.members = append(h.members, m)
	}
	h.up(*p)
	h.down(*p)
}

// remove takes a member out; one that is not there is left alone.
func (h *heap[T]) remove(m T) {
	i := *h.place(m)
	if i < 0 {
		return
	}
	last := len(h.members) - 1
	h.swap(i, last)
	var zero T
	h.members[last] = zero
	h.members = h.members[:last]
	*h.place(m) = -1
	if i < last {
		h.up(i)
		h.down(i)
	}
}

func (h *heap[T]) swap(i, j int) {
	h.members[i], h.members[j] = h.members[j], h.members[i]
	*h.place(h.members[i]) = i
	*h.place(h.members[j]) = j
}

func (h *heap[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(h.members[i], h.members[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *heap[T]) down(i int) {
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(h.members) && h.less(h.members[child], h.members[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}
