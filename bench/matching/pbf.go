package main

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"milepost/internal/roadnet"
)

// network is a road map in the making: the networks of drives that come without an OSM map become one that every engine reads.
type network struct {
	nodes map[int64]roadnet.Point
	ways  map[int64]way
}

type way struct {
	refs []int64
	tags [][2]string
}

func newNetwork() *network {
	return &network{nodes: make(map[int64]roadnet.Point), ways: make(map[int64]way)}
}

// graph imports the network as graph build does by default: with edges against one-way streets, so that driving there is judged.
func (n *network) graph() (*roadnet.Graph, error) {
	b := roadnet.NewBuilderFor(roadnet.ImportOptions{Contraflow: true})
	for _, id := range slices.Sorted(maps.Keys(n.ways)) {
		var tags roadnet.Tags
		for _, t := range n.ways[id].tags {
			tags = append(tags, roadnet.Tag{Key: t[0], Value: t[1]})
		}
		b.AddWay(id, n.ways[id].refs, tags)
	}
	for _, id := range slices.Sorted(maps.Keys(n.nodes)) {
		p := n.nodes[id]
		b.AddNode(id, sevenths(p.Lon), sevenths(p.Lat), nil)
	}
	return b.Build()
}

// sevenths are ten-millionths of a degree.
func sevenths(deg float64) int64 { return int64(math.Round(deg * 1e7)) }

const blockSize = 8000 // objects, as the format advises

// write writes the network as OSM PBF: nodes, then ways, both in the order of their ids, which some readers need.
func (n *network) write(path string) error {
	var f bytes.Buffer
	header := bytesField(nil, 4, []byte("OsmSchema-V0.6"))
	header = bytesField(header, 4, []byte("DenseNodes"))
	header = bytesField(header, 5, []byte("Sort.Type_then_ID"))
	if err := block(&f, "OSMHeader", header); err != nil {
		return err
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(n.nodes)), blockSize) {
		if err := block(&f, "OSMData", n.nodeBlock(ids)); err != nil {
			return err
		}
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(n.ways)), blockSize) {
		if err := block(&f, "OSMData", n.wayBlock(ids)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, f.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the map: %w", err)
	}
	return nil
}

func (n *network) nodeBlock(ids []int64) []byte {
	var lons, lats []int64
	for _, id := range ids {
		p := n.nodes[id]
		lons, lats = append(lons, sevenths(p.Lon)), append(lats, sevenths(p.Lat))
	}
	dense := bytesField(nil, 1, deltas(ids))
	dense = bytesField(dense, 8, deltas(lats))
	dense = bytesField(dense, 9, deltas(lons))
	return bytesField(bytesField(nil, 1, bytesField(nil, 1, nil)), 2, bytesField(nil, 2, dense))
}

func (n *network) wayBlock(ids []int64) []byte {
	words := []string{""}
	number := map[string]uint64{"": 0}
	word := func(s string) uint64 {
		if _, ok := number[s]; !ok {
			number[s] = uint64(len(words))
			words = append(words, s)
		}
		return number[s]
	}
	var group []byte
	for _, id := range ids {
		var keys, vals []byte
		for _, t := range n.ways[id].tags {
			keys, vals = protowire.AppendVarint(keys, word(t[0])), protowire.AppendVarint(vals, word(t[1]))
		}
		w := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(id))
		w = bytesField(bytesField(bytesField(w, 2, keys), 3, vals), 8, deltas(n.ways[id].refs))
		group = bytesField(group, 3, w)
	}
	var table []byte
	for _, s := range words {
		table = bytesField(table, 1, []byte(s))
	}
	return bytesField(bytesField(nil, 1, table), 2, group)
}

// block appends a zipped block with its header.
func block(f *bytes.Buffer, kind string, data []byte) error {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	blob := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), uint64(len(data)))
	blob = bytesField(blob, 3, z.Bytes())
	header := bytesField(nil, 1, []byte(kind))
	header = protowire.AppendVarint(protowire.AppendTag(header, 3, protowire.VarintType), uint64(len(blob)))
	f.Write(binary.BigEndian.AppendUint32(nil, uint32(len(header))))
	f.Write(header)
	f.Write(blob)
	return nil
}

func bytesField(b []byte, num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}

// deltas packs the differences between neighbours.
func deltas(vs []int64) (b []byte) {
	last := int64(0)
	for _, v := range vs {
		b = protowire.AppendVarint(b, protowire.EncodeZigZag(v-last))
		last = v
	}
	return b
}
