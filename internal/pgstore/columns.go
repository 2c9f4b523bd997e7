package pgstore

import (
	"milepost/internal/commit"
	"milepost/internal/stream"
)

// columns are the rows of a prepare or a persist as the arrays that its statement unnests, with the fence that they are under.
type columns struct {
	fence                        fence
	fences                       []int32
	keys, states                 [][]byte
	ids                          uuids
	baseGenerations, generations []int32
	baseOffsets, offsets         []int64
	segments                     []int64
}

// add appends a row: a key's next checkpoint over its base.
func (c *columns) add(t *commit.Tenure, key stream.Key, base stream.Revision, next commit.Checkpoint, id commit.ID) {
	c.fences, c.keys = append(c.fences, c.fence.add(t)), append(c.keys, []byte(key))
	c.baseGenerations, c.baseOffsets = append(c.baseGenerations, base.Generation), append(c.baseOffsets, base.Offset)
	c.generations, c.offsets = append(c.generations, next.Revision.Generation), append(c.offsets, next.Revision.Offset)
	c.segments, c.ids, c.states = append(c.segments, next.Segment), append(c.ids, uuid(id)), append(c.states, present(next.State))
}

// args gives the statement's parameters: the fence's, the arrays, and what else it has.
func (c *columns) args(more ...any) []any {
	own := []any{c.fences, c.keys, c.baseGenerations, c.baseOffsets, c.generations, c.offsets, c.segments, c.ids, c.states}
	return c.fence.args(append(own, more...)...)
}

// present makes an empty value of a missing one: in a row, null means that there is none.
func present(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
