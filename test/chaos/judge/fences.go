package judge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// tenure is one ownership of a partition.
type tenure struct {
	partition int32
	epoch     int64
}

// epochs checks that epochs are issued one by one and never go back, of owner rows, of keys and of ledger partitions.
func (j *judgement) epochs() {
	last := map[int32]Owner{}
	nonces := map[string]tenure{}
	issued := map[tenure]string{}
	for _, o := range j.h.Owners {
		at := text(fmt.Sprintf("partition %d", o.Partition))
		was := last[o.Partition]
		switch {
		case o.Epoch != was.Epoch && o.Epoch != was.Epoch+1, o.Epoch == was.Epoch && o.Nonce != was.Nonce:
			j.violate("epoch", at, j.owners(o.Partition), "the owner row went from epoch %d, nonce %s to epoch %d, nonce %s", was.Epoch, was.Nonce, o.Epoch, o.Nonce)
		case o.Epoch == was.Epoch:
			continue
		}
		me := tenure{o.Partition, o.Epoch}
		if other, again := nonces[fmt.Sprint(o.Partition, o.Nonce)]; again {
			j.violate("epoch", at, j.owners(o.Partition), "epochs %d and %d have one nonce", other.epoch, o.Epoch)
		}
		nonces[fmt.Sprint(o.Partition, o.Nonce)] = me
		last[o.Partition], issued[me] = o, o.Instance
	}
	j.checked["acquisitions"] = len(issued)
	j.epochsOfKeys(issued)
	j.epochsOfLedger(issued)
}

func (j *judgement) epochsOfKeys(issued map[tenure]string) {
	last := map[lane]named{}
	for _, n := range j.outs {
		if _, ok := issued[tenure{n.id.Partition, n.epoch}]; !ok {
			j.violate("epoch", n.id, j.about(n.id), "its epoch %d was never issued", n.epoch)
		}
		if n.Dead { // another topic: its order beside the outputs is nobody's promise
			continue
		}
		at := lane{n.id.Partition, n.Key}
		if was, ok := last[at]; ok && n.epoch < was.epoch {
			j.violate("epoch", at, j.about(n.id), "%s was decided under epoch %d, after %s under epoch %d", n.id, n.epoch, was.id, was.epoch)
		}
		last[at] = n
	}
}

// epochsOfLedger checks what each transaction says of itself. Without transactions a process that lost a partition may repeat, so that there
// is no order of epochs and no producer that belongs to a process.
func (j *judgement) epochsOfLedger(issued map[tenure]string) {
	if !j.h.Mode.Transactional() {
		return
	}
	last := map[int32]Entry{}
	known := 0
	for _, e := range j.h.Ledger {
		at := text(fmt.Sprintf("ledger %d@%d", e.Partition, e.Offset))
		if was, ok := last[e.Partition]; ok && e.Epoch < was.Epoch {
			j.violate("epoch", at, append(j.owners(e.Partition), j.ledgerAround(e)...), "epoch %d after epoch %d at %d", e.Epoch, was.Epoch, was.Offset)
		}
		last[e.Partition] = e
		instance, ok := issued[tenure{e.Partition, e.Epoch}]
		if !ok {
			j.violate("epoch", at, j.owners(e.Partition), "its epoch %d was never issued", e.Epoch)
			continue
		}
		id, ok := j.h.Producers[e.Producer]
		if !ok {
			continue // the brokers have forgotten it, or its client took a new producer id since
		}
		known++
		if !strings.Contains(id, "."+instance+".") {
			j.violate("owner", at, append(j.owners(e.Partition), j.ledgerAround(e)...), "epoch %d belongs to %s, the transaction to %s", e.Epoch, instance, id)
		}
	}
	j.checked["ledger entries"], j.checked["ledger entries with a known producer"] = len(j.h.Ledger), known
}

// ledger checks that each output is named by the ledger once, by an epoch that is not below its own.
func (j *judgement) ledger() {
	if j.h.LedgerWhole {
		j.checked["ledgers read whole"] = 1
	}
	for id, n := range j.first {
		entries := j.entries[id]
		if len(entries) == 0 && j.h.LedgerWhole {
			j.violate("ledger", id, j.about(id), "came out and is in no ledger record")
		}
		if j.h.Mode.Transactional() && len(entries) > 1 {
			j.violate("ledger", id, j.about(id), "the ledger names it %d times", len(entries))
		}
		for _, e := range entries {
			if e.Epoch < n.epoch && j.h.Mode.Transactional() {
				j.violate("ledger", id, j.about(id), "published under epoch %d, decided under epoch %d", e.Epoch, n.epoch)
			}
		}
	}
	for id, entries := range j.entries {
		if _, out := j.first[id]; !out {
			j.violate("ledger", id, j.about(id), "the ledger names it at %d and it did not come out", entries[0].Offset)
		}
	}
}

// frontiers checks every write of a frontier, what stood below it when it was seen, and where it ended.
func (j *judgement) frontiers() {
	at := map[int32]Moved{}
	for _, m := range j.h.Frontiers {
		if m.ToGen < m.FromGen || m.ToGen == m.FromGen && m.To < m.From || m.ToGen == m.FromGen && m.Floor < m.FromFloor {
			j.violate("frontier", text(fmt.Sprintf("partition %d", m.Partition)), j.owners(m.Partition),
				"went from %d.%d, floor %d to %d.%d, floor %d at %s", m.FromGen, m.From, m.FromFloor, m.ToGen, m.To, m.Floor, m.At.UTC().Format(clock))
		}
		at[m.Partition] = m
	}
	j.checked["frontier writes"], j.checked["frontier samples"] = len(j.h.Frontiers), len(j.h.Samples)
	byPartition := map[int32][]ID{}
	for _, r := range j.h.Raw {
		byPartition[r.ID.Partition] = append(byPartition[r.ID.Partition], r.ID)
	}
	for _, p := range slices.Sorted(maps.Keys(byPartition)) {
		ids := byPartition[p]
		j.samples(p, ids)
		if end := ids[len(ids)-1].Offset + 1; j.h.Final[p] != end && j.h.Stuck == "" {
			j.violate("frontier", text(fmt.Sprintf("partition %d", p)), j.owners(p), "stands at %d after the drain, the log ends at %d", j.h.Final[p], end)
		}
	}
}

// samples checks that what was below a frontier stood in the topics already. What an earlier sample covered needs no second look: ends only grow.
func (j *judgement) samples(p int32, ids []ID) {
	next := 0
	for _, s := range j.h.Samples {
		for ; next < len(ids) && ids[next].Offset < s.Frontiers[p]; next++ {
			id := ids[next]
			n, out := j.first[id]
			if !out {
				continue // in quarantine; or lost, which is told already
			}
			ends := s.Outputs
			if n.Dead {
				ends = s.Dead
			}
			if end, ok := ends[n.Partition]; ok && n.Offset >= end {
				j.violate("frontier", id, j.about(id), "the frontier was %d at %s, and its output at %d@%d came later than %d",
					s.Frontiers[p], s.At.UTC().Format(clock), n.Partition, n.Offset, end)
			}
		}
	}
}

// tables checks what the drain left in Postgres.
func (j *judgement) tables() {
	rows := map[lane]Checkpoint{}
	for _, c := range j.h.Checkpoints {
		at := lane{c.Partition, c.Key}
		rows[at] = c
		e := j.lanes[at]
		switch {
		case e == nil || len(e.good) == 0 && (c.Offset != 0 || c.State != ""):
			j.violate("checkpoint", at, nil, "a row of revision offset %d, and no record of the key came out", c.Offset)
		case c.Prepared && len(e.quarantine) == 0 && j.h.Stuck == "":
			j.violate("prepared", at, j.about(ID{at.partition, c.Offset}), "a commit stands prepared over revision offset %d", c.Offset)
		}
	}
	j.checked["checkpoint rows"] = len(rows)
	for _, at := range sorted(j.lanes) {
		e := j.lanes[at]
		if len(e.good) == 0 || j.h.Stuck != "" {
			continue
		}
		last := e.good[len(e.good)-1]
		if c, ok := rows[at]; !ok || c.Offset != last.Offset || c.State != strconv.Itoa(len(e.good)) {
			j.violate("checkpoint", at, j.about(last), "the row has revision offset %d and state %q, want %d and %d", c.Offset, c.State, last.Offset, len(e.good))
		}
	}
	for _, b := range j.h.Backwards {
		j.violate("checkpoint", text("row"), nil, "%s", b)
	}
}

// ends checks how the workers ended, and that they came to an end.
func (j *judgement) ends() {
	if j.h.Stuck != "" {
		j.violate("stuck", text("group"), nil, "%s", j.h.Stuck)
	}
	for _, e := range j.h.Exits {
		if e.Panic != "" {
			j.violate("crash", text(e.Worker), nil, "exit code %d: %s", e.Code, e.Panic)
		}
		if e.Asked && e.Code != 0 {
			j.violate("drain", text(e.Worker), nil, "exit code %d", e.Code)
		}
	}
	j.checked["worker ends"] = len(j.h.Exits)
}
