package judge

import (
	"fmt"
	"slices"
)

const (
	clock   = "15:04:05.000"
	tellMax = 40 // lines of a kind in a violation's history
	tellAll = 25 // violations with their history
)

// about tells the history of a raw record's key: what was written, what came out, what the ledger and the tables say.
func (j *judgement) about(id ID) []string {
	if len(j.violations) >= tellAll {
		return nil
	}
	r := j.raw[id]
	if r == nil {
		return j.owners(id.Partition)
	}
	var lines []string
	near := func(o int64) bool { return o >= id.Offset-400 && o <= id.Offset+400 }
	for i := range j.h.Raw {
		if x := &j.h.Raw[i]; x.ID.Partition == id.Partition && x.Key == r.Key && near(x.ID.Offset) {
			lines = append(lines, fmt.Sprintf("raw %s key %q value %.20q", x.ID, x.Key, x.Value))
		}
	}
	raws := clip(lines)
	lines = nil
	for i := range j.h.Outputs {
		o := &j.h.Outputs[i]
		if n, err := j.understand(o); err == nil && n.id.Partition == id.Partition && o.Key == r.Key && near(n.id.Offset) {
			what := "output"
			if o.Dead {
				what = "dead letter"
			}
			lines = append(lines, fmt.Sprintf("%s %d@%d of %s, n %d, epoch %d", what, o.Partition, o.Offset, n.id, n.value.N, n.epoch))
		}
	}
	outs := clip(lines)
	lines = nil
	for _, e := range j.h.Ledger {
		if e.Partition == id.Partition && e.Key == r.Key && slices.ContainsFunc(e.Offsets, near) {
			lines = append(lines, fmt.Sprintf("ledger %d@%d names %v, epoch %d, producer %d %s", e.Partition, e.Offset, e.Offsets, e.Epoch, e.Producer, j.h.Producers[e.Producer]))
		}
	}
	all := slices.Concat(raws, outs, clip(lines))
	for _, c := range j.h.Checkpoints {
		if c.Partition == id.Partition && c.Key == r.Key {
			all = append(all, fmt.Sprintf("checkpoint revision offset %d, state %q, prepared %t", c.Offset, c.State, c.Prepared))
		}
	}
	return append(all, j.owners(id.Partition)...)
}

// owners tells who owned a partition, and when.
func (j *judgement) owners(p int32) []string {
	var lines []string
	for _, o := range j.h.Owners {
		if o.Partition == p {
			lines = append(lines, fmt.Sprintf("owner of %d: epoch %d, %s, at %s", p, o.Epoch, o.Instance, o.At.UTC().Format(clock)))
		}
	}
	return clip(lines)
}

// ledgerAround tells what stands beside an entry.
func (j *judgement) ledgerAround(e Entry) []string {
	var lines []string
	for _, x := range j.h.Ledger {
		if x.Partition == e.Partition && x.Offset > e.Offset-20 && x.Offset < e.Offset+20 {
			lines = append(lines, fmt.Sprintf("ledger %d@%d: key %q, %v, epoch %d, producer %d %s", x.Partition, x.Offset, x.Key, x.Offsets, x.Epoch, x.Producer, j.h.Producers[x.Producer]))
		}
	}
	return clip(lines)
}

func clip(lines []string) []string {
	if len(lines) <= tellMax {
		return lines
	}
	left := len(lines) - tellMax
	return append(lines[:tellMax/2:tellMax/2], append([]string{fmt.Sprintf("… %d more …", left)}, lines[len(lines)-tellMax/2:]...)...)
}
