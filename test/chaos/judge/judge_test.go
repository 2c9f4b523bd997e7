package judge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"milepost/test/chaos/judge"
)

const (
	transactional = "transactional"
	idempotent    = "idempotent"
)

// clean makes a history of two partitions in which everything is as promised: three keys, a poison record, a key in quarantine, and an owner
// of partition 0 that came second.
func clean(publish string) *judge.History {
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	h := &judge.History{
		Mode: judge.Mode{Protocol: "classic", Durability: "prepared", Publish: publish}, RawTopic: "raw", LedgerWhole: true,
		Producers: map[int64]string{11: "g.raw.first.0", 12: "g.raw.second.0"},
		Owners: []judge.Owner{
			{Partition: 0, Epoch: 1, Nonce: "a", Instance: "first", At: start},
			{Partition: 1, Epoch: 1, Nonce: "b", Instance: "first", At: start},
			{Partition: 0, Epoch: 2, Nonce: "c", Instance: "second", At: start.Add(time.Second)},
		},
		Frontiers: []judge.Moved{
			{Partition: 0, FromGen: 1, ToGen: 1, To: 3, Floor: 2}, {Partition: 0, FromGen: 1, From: 3, FromFloor: 2, ToGen: 1, To: 8, Floor: 5},
		},
		Final:      map[int32]int64{0: 8, 1: 2},
		Quarantine: []judge.Quarantined{{ID: judge.ID{Partition: 0, Offset: 5}, Key: "q", Value: "refuse"}, {ID: judge.ID{Partition: 0, Offset: 7}, Key: "q", Value: "after"}},
		Checkpoints: []judge.Checkpoint{
			{Partition: 0, Key: "a", Offset: 6, State: "4"}, {Partition: 0, Key: "q", Offset: 3, State: "1", Prepared: true}, {Partition: 1, Key: "b", Offset: 1, State: "2"},
		},
		Exits: []judge.Exit{{Worker: "worker-0", Code: -1}, {Worker: "worker-1, drained", Asked: true}},
	}
	ends := int64(0)
	for number, values := range [][]string{{"a 1", "a 2", "a poison", "q 1", "a 3", "q refuse", "a 4", "q after"}, {"b 1", "b 2"}} {
		partition, n, stopped := int32(number), map[string]int{}, false
		for offset, kv := range values {
			key, value, _ := strings.Cut(kv, " ")
			id := judge.ID{Partition: partition, Offset: int64(offset)}
			h.Raw = append(h.Raw, judge.Raw{ID: id, Key: key, Value: value})
			epoch := int64(1)
			if partition == 0 && offset >= 4 {
				epoch = 2
			}
			if stopped = stopped || value == "refuse"; stopped && key == "q" {
				continue
			}
			at, dead := ends, value == "poison"
			if !dead {
				n[key]++
				ends++
			}
			h.Outputs = append(h.Outputs, output(id, dead, at, key, value, n[key], epoch))
			h.Ledger = append(h.Ledger, judge.Entry{
				Partition: partition, Offset: int64(2 * offset), Epoch: epoch, Producer: 10 + epoch, Key: key, Offsets: []int64{id.Offset}, Dead: dead,
			})
		}
	}
	h.Samples = []judge.Sample{{At: start, Frontiers: map[int32]int64{0: 8, 1: 2}, Outputs: map[int32]int64{0: ends}, Dead: map[int32]int64{0: 1}}}
	return h
}

func output(id judge.ID, dead bool, at int64, key, value string, n int, epoch int64) judge.Output {
	o := judge.Output{Dead: dead, Offset: at, Key: key, Headers: []judge.Header{
		{Name: "ce_subject", Value: key},
		{Name: "ce_id", Value: fmt.Sprintf("raw/1/%d/%d/0", id.Partition, id.Offset)},
		{Name: "ce_revision", Value: fmt.Sprintf("1.%d", id.Offset)},
		{Name: "ce_epoch", Value: fmt.Sprint(epoch)},
	}}
	if dead {
		o.Offset, o.Value, o.Headers = 0, value, append(o.Headers, judge.Header{Name: "ce_reason", Value: "poison"})
		return o
	}
	o.Value = fmt.Sprintf(`{"key":%q,"n":%d,"segment":1,"topic":"raw","generation":1,"partition":%d,"offset":%d}`, key, n, id.Partition, id.Offset)
	return o
}

// of finds the output of a raw record.
func of(h *judge.History, partition int32, offset int64) int {
	id := fmt.Sprintf("raw/1/%d/%d/0", partition, offset)
	return slices.IndexFunc(h.Outputs, func(o judge.Output) bool { return o.Header("ce_id") == id })
}

func entryOf(h *judge.History, partition int32, offset int64) *judge.Entry {
	i := slices.IndexFunc(h.Ledger, func(e judge.Entry) bool { return e.Partition == partition && e.Offsets[0] == offset })
	return &h.Ledger[i]
}

func set(o *judge.Output, name, value string) {
	o.Headers = slices.Clone(o.Headers)
	for i := range o.Headers {
		if o.Headers[i].Name == name {
			o.Headers[i].Value = value
		}
	}
}

// again lets a record come out once more, at the end of its partition.
func again(h *judge.History, o judge.Output) {
	o.Offset = 1000
	h.Outputs = append(h.Outputs, o)
}

// A history in which everything is as promised has no violation, in either publish mode; and what was looked at is counted.
func TestCleanHistory(t *testing.T) {
	for _, publish := range []string{transactional, idempotent} {
		v := judge.Judge(clean(publish))
		if len(v.Violations) > 0 {
			t.Errorf("%s: %v", publish, v.Violations)
		}
		if v.Checked["raw records"] != 10 || v.Checked["outputs and dead letters"] != 8 || v.Checked["quarantine rows"] != 2 {
			t.Errorf("%s: checked %v", publish, v.Checked)
		}
	}
}

// planted are faults, one of each kind that the judge knows, put into a clean history: it must name exactly that kind.
func planted() map[string]struct {
	kind  string
	plant func(h *judge.History)
} {
	type fault = struct {
		kind  string
		plant func(h *judge.History)
	}
	return map[string]fault{
		"no output": {"lost", func(h *judge.History) {
			i := of(h, 1, 1)
			h.Outputs = slices.Delete(h.Outputs, i, i+1)
			h.Ledger = slices.DeleteFunc(h.Ledger, func(e judge.Entry) bool { return e.Partition == 1 && e.Offsets[0] == 1 })
		}},
		"no quarantine row": {"lost", func(h *judge.History) { h.Quarantine = h.Quarantine[:1] }},
		"no dead letter": {"lost", func(h *judge.History) {
			i := of(h, 0, 2)
			h.Outputs = slices.Delete(h.Outputs, i, i+1)
			dropEntry(h, 2)
		}},
		"two outputs":      {"twice", func(h *judge.History) { again(h, h.Outputs[of(h, 0, 0)]) }},
		"two dead letters": {"twice", func(h *judge.History) { again(h, h.Outputs[of(h, 0, 2)]) }},
		"outputs swapped": {"order", func(h *judge.History) {
			a, b := of(h, 0, 0), of(h, 0, 1)
			h.Outputs[a], h.Outputs[b] = h.Outputs[b], h.Outputs[a]
		}},
		"a number left out": {"order", func(h *judge.History) {
			o := &h.Outputs[of(h, 1, 1)]
			o.Value = strings.Replace(o.Value, `"n":2`, `"n":3`, 1)
		}},
		"another output's place": {"order", func(h *judge.History) { h.Outputs[of(h, 1, 1)].Partition = 7 }},
		"value of another key": {"content", func(h *judge.History) {
			o := &h.Outputs[of(h, 1, 1)]
			o.Value = strings.Replace(o.Value, `"b"`, `"c"`, 1)
		}},
		"value is no JSON": {"content", func(h *judge.History) { h.Outputs[of(h, 1, 1)].Value = "{" }},
		"a reset": {"content", func(h *judge.History) {
			o := &h.Outputs[of(h, 1, 1)]
			o.Value = strings.Replace(o.Value, `"segment":1`, `"segment":2,"reset":"state_lost"`, 1)
		}},
		"revision of another": {"content", func(h *judge.History) { set(&h.Outputs[of(h, 1, 1)], "ce_revision", "1.0") }},
		"output of poison": {"content", func(h *judge.History) {
			i := of(h, 0, 2)
			h.Outputs[i] = output(judge.ID{Offset: 2}, false, 500, "a", "", 3, 1)
		}},
		"no raw record": {"foreign", func(h *judge.History) {
			h.Outputs = append(h.Outputs, output(judge.ID{Partition: 1, Offset: 9}, false, 500, "b", "", 3, 1))
		}},
		"key's epoch back":   {"epoch", func(h *judge.History) { set(&h.Outputs[of(h, 0, 6)], "ce_epoch", "1") }},
		"epoch never issued": {"epoch", func(h *judge.History) { set(&h.Outputs[of(h, 1, 1)], "ce_epoch", "4"); entryOf(h, 1, 1).Epoch = 4 }},
		"owner skips an epoch": {"epoch", func(h *judge.History) {
			h.Owners = append(h.Owners, judge.Owner{Partition: 1, Epoch: 3, Nonce: "d", Instance: "second"})
		}},
		"one nonce twice": {"epoch", func(h *judge.History) {
			h.Owners = append(h.Owners, judge.Owner{Partition: 1, Epoch: 2, Nonce: "b", Instance: "second"})
		}},
		"zombie's epoch in ledger": {"epoch", func(h *judge.History) {
			entryOf(h, 0, 6).Epoch = 1
			entryOf(h, 0, 6).Producer = 11
			set(&h.Outputs[of(h, 0, 6)], "ce_epoch", "1")
		}},
		"zombie's transaction":   {"owner", func(h *judge.History) { entryOf(h, 0, 6).Producer = 11 }},
		"ledger lacks an output": {"ledger", func(h *judge.History) { dropEntry(h, 4) }},
		"ledger names it twice":  {"ledger", func(h *judge.History) { h.Ledger = append(h.Ledger, *entryOf(h, 0, 6)) }},
		"ledger names what never came": {"ledger", func(h *judge.History) {
			e := *entryOf(h, 0, 6)
			e.Offsets = []int64{5}
			h.Ledger = append(h.Ledger, e)
		}},
		"frontier back": {"frontier", func(h *judge.History) {
			h.Frontiers = append(h.Frontiers, judge.Moved{FromGen: 1, From: 8, FromFloor: 5, ToGen: 1, To: 7, Floor: 5})
		}},
		"floor back":               {"frontier", func(h *judge.History) { h.Frontiers[1].Floor = 1 }},
		"frontier before its time": {"frontier", func(h *judge.History) { h.Samples[0].Outputs[0] = 1 }},
		"frontier below the end":   {"frontier", func(h *judge.History) { h.Final[1] = 1 }},
		"frontier above the end":   {"frontier", func(h *judge.History) { h.Final[1] = 3 }},
		"left prepared":            {"prepared", func(h *judge.History) { h.Checkpoints[0].Prepared = true }},
		"quarantine row changed":   {"quarantine", func(h *judge.History) { h.Quarantine[1].Value = "other" }},
		"quarantine row doubled":   {"quarantine", func(h *judge.History) { h.Quarantine = append(h.Quarantine, h.Quarantine[1]) }},
		"quarantine of no cause": {"quarantine", func(h *judge.History) {
			h.Quarantine = append(h.Quarantine, judge.Quarantined{ID: judge.ID{Partition: 1, Offset: 1}, Key: "b", Value: "2"})
			i := of(h, 1, 1)
			h.Outputs = slices.Delete(h.Outputs, i, i+1)
			h.Ledger = slices.DeleteFunc(h.Ledger, func(e judge.Entry) bool { return e.Partition == 1 && e.Offsets[0] == 1 })
		}},
		"quarantined and out": {"quarantine", func(h *judge.History) {
			h.Outputs = append(h.Outputs, output(judge.ID{Offset: 5}, false, 500, "q", "", 2, 2))
			h.Ledger = append(h.Ledger, judge.Entry{Offset: 40, Epoch: 2, Producer: 12, Key: "q", Offsets: []int64{5}})
		}},
		"dead letter changed":   {"dead letter", func(h *judge.History) { h.Outputs[of(h, 0, 2)].Value = "poisoned" }},
		"dead letter of a good": {"dead letter", func(h *judge.History) { o := &h.Outputs[of(h, 1, 1)]; o.Dead, o.Value = true, "2" }},
		"checkpoint behind":     {"checkpoint", func(h *judge.History) { h.Checkpoints[2].Offset, h.Checkpoints[2].State = 0, "1" }},
		"checkpoint missing":    {"checkpoint", func(h *judge.History) { h.Checkpoints = h.Checkpoints[:2] }},
		"checkpoint of nobody": {"checkpoint", func(h *judge.History) {
			h.Checkpoints = append(h.Checkpoints, judge.Checkpoint{Key: "z", Offset: 3, State: "1"})
		}},
		"checkpoint went back": {"checkpoint", func(h *judge.History) { h.Backwards = []string{"partition 0 key a went from revision 1.4 to 1.3"} }},
		"never ends":           {"stuck", func(h *judge.History) { h.Stuck = "1 raw record has no output" }},
		"drain fails":          {"drain", func(h *judge.History) { h.Exits[1].Code = 1 }},
		"panic":                {"crash", func(h *judge.History) { h.Exits[0].Panic = "panic: invariant I3" }},
	}
}

func dropEntry(h *judge.History, offset int64) {
	h.Ledger = slices.DeleteFunc(h.Ledger, func(e judge.Entry) bool { return e.Partition == 0 && e.Offsets[0] == offset })
}

// The judge can fail: each kind of violation, planted in a clean history, is found and named (P25, P2, P12, P40).
func TestPlantedFaultsAreFound(t *testing.T) {
	found := map[string]bool{}
	for name, f := range planted() {
		t.Run(name, func(t *testing.T) {
			h := clean(transactional)
			f.plant(h)
			v := judge.Judge(h).Violations
			if !slices.ContainsFunc(v, func(v judge.Violation) bool { return v.Kind == f.kind }) {
				t.Errorf("planted %s: found %v", f.kind, v)
			}
		})
		found[f.kind] = true
	}
	for _, kind := range []string{
		"lost", "twice", "order", "content", "foreign", "epoch", "owner", "ledger", "frontier", "prepared", "quarantine", "dead letter", "checkpoint",
		"stuck", "drain", "crash",
	} {
		if !found[kind] {
			t.Errorf("no fault of kind %q is planted", kind)
		}
	}
}

// Without transactions a repeat is no violation when its bytes are the first copy's (a dead letter's epoch is its maker's), and is one when
// they are not (H9).
func TestRepeatsWithoutTransactions(t *testing.T) {
	h := clean(idempotent)
	again(h, h.Outputs[of(h, 0, 0)])
	letter := h.Outputs[of(h, 0, 2)]
	set(&letter, "ce_epoch", "2")
	again(h, letter)
	if v := judge.Judge(h); len(v.Violations) > 0 || v.Checked["repeats dropped"] != 2 {
		t.Errorf("repeats of the same bytes: %v, checked %v", v.Violations, v.Checked)
	}
	for name, change := range map[string]func(o *judge.Output){
		"value":  func(o *judge.Output) { o.Value = strings.Replace(o.Value, `"n":1`, `"n":2`, 1) },
		"header": func(o *judge.Output) { set(o, "ce_epoch", "2") },
	} {
		h := clean(idempotent)
		o := h.Outputs[of(h, 0, 0)]
		change(&o)
		again(h, o)
		if v := judge.Judge(h).Violations; len(v) != 1 || v[0].Kind != "twice" || !strings.Contains(v[0].Detail, name) {
			t.Errorf("a repeat with another %s: %v", name, v)
		}
	}
}

// A violation tells its history: the raw records, outputs, ledger entries, rows and owners that have to do with it.
func TestHistoryIsTold(t *testing.T) {
	h := clean(transactional)
	again(h, h.Outputs[of(h, 0, 4)])
	v := judge.Judge(h).Violations
	if len(v) != 1 {
		t.Fatalf("%v", v)
	}
	told := strings.Join(v[0].History, "\n")
	for _, want := range []string{"raw 0@4 key \"a\"", "output 0@1000 of 0@4, n 3, epoch 2", "ledger 0@8 names [4], epoch 2, producer 12 g.raw.second.0", "checkpoint revision offset 6", "owner of 0: epoch 2, second"} {
		if !strings.Contains(told, want) {
			t.Errorf("the history lacks %q:\n%s", want, told)
		}
	}
}
