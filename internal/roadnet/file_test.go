package roadnet_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

func written(tb testing.TB, g *roadnet.Graph) []byte {
	tb.Helper()
	var b bytes.Buffer
	n, err := g.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		tb.Fatalf("wrote %d of %d bytes: %v", b.Len(), n, err)
	}
	return b.Bytes()
}

// everyKind is a small map with something in every section of the file.
func everyKind(tb testing.TB) *roadnet.Graph {
	tb.Helper()
	return roadnettest.ParseFor(tb, roadnet.ImportOptions{Vehicles: roadnet.AllVehicles(), Contraflow: true}, `
		a: A(0,0)-J(100,0); v: J-p(150,9)-K(200,0); b: K>B(300,0); c: K-C(200,100) highway=cycleway; C-A
		s: K-S(200,-50) highway=service access=private; F(200,900)-G(300,900) route=ferry duration=01:00
		no_left_turn a v s; no_right_turn a J v; J barrier=gate; C barrier=bollard`).Graph
}

// A graph comes back from its file as it was: hash, counts, answers and bytes, whatever the alignment of the bytes in memory.
func TestFileRoundTrip(t *testing.T) {
	via, _ := viaCity(t, 1, 5)
	empty, err := roadnet.NewBuilder(nil).Build()
	if err != nil {
		t.Fatal(err)
	}
	graphs := map[string]*roadnet.Graph{
		"city": randomCity(t, 1, roadnet.Point{Lon: 179.995, Lat: -17}, 10), "restrictions over ways": via, "every kind": everyKind(t), "empty": empty,
	}
	for name, g := range graphs {
		data := written(t, g)
		for _, shift := range []int{0, 1, 4} {
			moved := append(make([]byte, shift, shift+len(data)), data...)[shift:]
			got, err := roadnet.Open(moved)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got.Hash() != g.Hash() || got.Stats() != g.Stats() || got.Vehicles() != g.Vehicles() || got.Contraflow() != g.Contraflow() {
				t.Errorf("%s: another graph: %+v", name, got.Stats())
			}
			if err := got.Verify(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !bytes.Equal(written(t, got), data) {
				t.Errorf("%s: written again, other bytes", name)
			}
			sameAnswers(t, g, got)
		}
	}
}

// sameAnswers asks two graphs the same questions.
func sameAnswers(t *testing.T, a, b *roadnet.Graph) {
	t.Helper()
	if a.Edges() == 0 {
		return
	}
	rnd := rand.New(rand.NewPCG(1, 9))
	views := []roadnet.View{{}, {Vehicle: roadnet.Bicycle}, {Vehicle: roadnet.Car, Contraflow: true}}
	for i := range 60 {
		v := views[i%len(views)]
		e, to := roadnet.EdgeIndex(rnd.IntN(a.Edges())), roadnet.EdgeIndex(rnd.IntN(a.Edges()))
		if a.Edge(e) != b.Edge(e) || a.Key(e) != b.Key(e) || a.StrongComponent(e, v.Vehicle) != b.StrongComponent(e, v.Vehicle) || a.Speed(e, v.Vehicle) != b.Speed(e, v.Vehicle) {
			t.Fatalf("edge %d: %+v, %+v", e, a.Edge(e), b.Edge(e))
		}
		p, _ := a.At(e, a.Edge(e).LengthCM/3)
		if diff := cmp.Diff(a.NearFor(nil, p, 80, v), b.NearFor(nil, p, 80, v)); diff != "" {
			t.Fatal(diff)
		}
		sa, sb := roadnet.NewSearchFor(a, v), roadnet.NewSearchFor(b, v)
		prices := roadnet.Penalties{UTurnCM: 4000, BanCM: 15_000, PrivateCM: 3000, ContraflowCM: 40_000}
		sa.From(e, 1<<20, prices)
		sb.From(e, 1<<20, prices)
		la, ca, oka := sa.To(to)
		lb, cb, okb := sb.To(to)
		if la != lb || ca != cb || oka != okb || sa.State(to) != sb.State(to) {
			t.Fatalf("from %d to %d: %d at %d %v, %d at %d %v", e, to, la, ca, oka, lb, cb, okb)
		}
		ra, ma, _ := roadnet.NewRouterFor(a, v.Vehicle).Route(nil, e, to)
		rb, mb, _ := roadnet.NewRouterFor(b, v.Vehicle).Route(nil, e, to)
		if diff := cmp.Diff(ra, rb); diff != "" || ma != mb {
			t.Fatal(diff)
		}
	}
}

// What is no graph file is refused with a reason: other files, other versions, short and long ones, and a changed bit wherever it is.
func TestOpenRefuses(t *testing.T) {
	data := written(t, everyKind(t))
	if _, err := roadnet.Open([]byte(smallXML)); !errors.Is(err, roadnet.ErrGraphFile) {
		t.Errorf("a map: %v", err)
	}
	newer := bytes.Clone(data)
	newer[8] = 2
	if _, err := roadnet.Open(newer); !errors.Is(err, roadnet.ErrGraphVersion) {
		t.Errorf("version 2: %v", err)
	}
	for n := range len(data) {
		if _, err := roadnet.Open(data[:n]); !errors.Is(err, roadnet.ErrGraphFile) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
		bad := bytes.Clone(data)
		bad[n] ^= 1 << (n % 8)
		if _, err := roadnet.Open(bad); err == nil {
			t.Fatalf("a changed bit in byte %d was taken", n)
		}
	}
	if _, err := roadnet.Open(append(bytes.Clone(data), 0)); !errors.Is(err, roadnet.ErrGraphFile) {
		t.Errorf("a byte more: %v", err)
	}
	if roadnet.IsGraphFile(data[:7]) || !roadnet.IsGraphFile(data) {
		t.Error("the magic bytes are not known")
	}
}

// reseal gives a changed file the length and the checksum that it needs to get past the frame.
func reseal(data []byte) []byte {
	if len(data) < 72 {
		return data
	}
	binary.LittleEndian.PutUint64(data[16:], uint64(len(data)))
	end := len(data) - 8
	binary.LittleEndian.PutUint32(data[end:], crc32.Checksum(data[:end], crc32.MakeTable(crc32.Castagnoli)))
	return data
}

// exercise asks a graph everything that could make a bad one panic.
func exercise(g *roadnet.Graph) {
	_ = g.Verify()
	g.Bounds()
	s, r := roadnet.NewSearchFor(g, roadnet.View{Contraflow: true}), roadnet.NewRouter(g)
	for e := range roadnet.EdgeIndex(g.Edges()) {
		g.Shape(nil, e)
		g.Key(e)
		g.StrongComponent(e, roadnet.Foot)
		p, _ := g.At(e, g.Edge(e).LengthCM/2)
		g.NearFor(nil, p, 60, roadnet.View{Vehicle: roadnet.Foot})
		g.Near(nil, p, 60)
		s.From(e, 1<<20, roadnet.Penalties{BanCM: 9})
		s.To(0)
		s.Path(nil, 0)
		r.Route(nil, e, 0)
	}
	for n := range roadnet.NodeIndex(g.Nodes()) {
		g.NodePoint(n)
		g.NodeID(n)
	}
	_, _ = g.WriteTo(io.Discard)
}

// A file whose checksum is right and whose content is not is refused, or answers without a panic: every byte set to several values.
func TestOpenResealed(t *testing.T) {
	data := written(t, everyKind(t))
	refused := 0
	for n := 64; n < len(data)-8; n++ {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			bad := bytes.Clone(data)
			if bad[n] == v {
				continue
			}
			bad[n] = v
			g, err := roadnet.Open(reseal(bad))
			if err != nil {
				refused++
			} else if n%7 == 0 || testing.Short() == false && n%2 == 0 {
				exercise(g)
			}
		}
	}
	if refused < 1000 {
		t.Errorf("only %d changes were refused", refused)
	}
}

// Verify finds a content that Open takes and that is not what the hash says.
func TestVerifyFindsOtherContent(t *testing.T) {
	g := everyKind(t)
	data := written(t, g)
	way := binary.LittleEndian.AppendUint64(nil, uint64(g.Edge(0).Way))
	at := bytes.Index(data, append(binary.LittleEndian.AppendUint32(nil, uint32(g.Edge(0).To)), way...))
	if at < 0 {
		t.Fatal("no edge in the file")
	}
	data[at+4]++
	bad, err := roadnet.Open(reseal(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := bad.Verify(); !errors.Is(err, roadnet.ErrGraphFile) {
		t.Errorf("another way: %v", err)
	}
}

// A writer's error comes through.
func TestWriteToFails(t *testing.T) {
	broken := errors.New("disk full")
	for _, room := range []int{0, 10, 1000} {
		if _, err := everyKind(t).WriteTo(&fullDisk{room: room, err: broken}); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", room, err)
		}
	}
}

type fullDisk struct {
	room int
	err  error
}

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.room -= len(b); d.room < 0 {
		return 0, d.err
	}
	return len(b), nil
}

// No bytes make Open panic, nor what it has opened.
func FuzzOpen(f *testing.F) {
	f.Add(written(f, everyKind(f)))
	f.Add(written(f, roadnettest.Parse(f, `A(0,0)-B(9,0)`).Graph))
	f.Fuzz(func(_ *testing.T, data []byte) {
		if g, err := roadnet.Open(reseal(bytes.Clone(data))); err == nil && g.Edges() < 200 {
			exercise(g)
		}
	})
}

func BenchmarkOpenDelaware(b *testing.B) {
	data := written(b, delaware(b))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := roadnet.Open(data); err != nil {
			b.Fatal(err)
		}
	}
}
