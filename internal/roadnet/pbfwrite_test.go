package roadnet_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// pbfFile writes the little of OSM PBF that the tests need.
type pbfFile struct{ bytes.Buffer }

func field(b []byte, num protowire.Number, val []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), val)
}

func number(b []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

func signed(v int64) uint64 { return protowire.EncodeZigZag(v) }

func packedList(vs ...uint64) (b []byte) {
	for _, v := range vs {
		b = protowire.AppendVarint(b, v)
	}
	return b
}

func deltas(vs ...int64) []byte {
	var out []uint64
	last := int64(0)
	for _, v := range vs {
		out = append(out, signed(v-last))
		last = v
	}
	return packedList(out...)
}

// block appends a block; packed with zlib or, as the format also allows, not at all.
func (f *pbfFile) block(kind string, data []byte, zipped bool) *pbfFile {
	var blob []byte
	if zipped {
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		_, _ = w.Write(data)
		_ = w.Close()
		blob = field(number(nil, 2, uint64(len(data))), 3, z.Bytes())
	} else {
		blob = field(nil, 1, data)
	}
	return f.raw(kind, blob)
}

func (f *pbfFile) raw(kind string, blob []byte) *pbfFile {
	header := number(field(nil, 1, []byte(kind)), 3, uint64(len(blob)))
	_ = binary.Write(&f.Buffer, binary.BigEndian, uint32(len(header)))
	f.Write(header)
	f.Write(blob)
	return f
}

func (f *pbfFile) header(features ...string) *pbfFile {
	var b []byte
	for _, s := range features {
		b = field(b, 4, []byte(s))
	}
	return f.block("OSMHeader", field(b, 16, []byte("test")), false)
}

func stringTable(ss ...string) (b []byte) {
	for _, s := range ss {
		b = field(b, 1, []byte(s))
	}
	return b
}

// smallPBF is the map of smallXML: a two-way street 1-2-3, a one-way side street 2-4 with a gate, and a rule; dense or plain nodes.
func smallPBF(dense, zipped bool) []byte {
	f := (&pbfFile{}).header("OsmSchema-V0.6", "DenseNodes")
	table := stringTable("", "highway", "residential", "oneway", "yes", "barrier", "gate", "type", "restriction", "no_left_turn", "from", "via", "to", "building")
	ids, lats, lons := []int64{1, 2, 3, 4, 5}, []int64{480000000, 480000000, 480000000, 480010000, 480020000}, []int64{90000000, 90010000, 90020000, 90010000, 90010000}
	var nodes []byte
	if dense {
		d := field(nil, 1, deltas(ids...))
		d = field(d, 8, deltas(lats...))
		d = field(d, 9, deltas(lons...))
		nodes = field(nil, 2, field(d, 10, packedList(0, 0, 0, 5, 6, 0, 0)))
	} else {
		for i := range ids {
			n := number(nil, 1, signed(ids[i]))
			if ids[i] == 4 {
				n = field(field(n, 2, packedList(5)), 3, packedList(6))
			}
			n = number(number(n, 8, signed(lats[i])), 9, signed(lons[i]))
			nodes = field(nodes, 1, n)
		}
	}
	f.block("OSMData", field(field(nil, 1, table), 2, nodes), zipped)
	f.block("Something", []byte("passed over"), zipped)
	way := func(id uint64, keys, vals []byte, refs ...int64) []byte {
		return field(field(field(number(nil, 1, id), 2, keys), 3, vals), 8, deltas(refs...))
	}
	ways := field(nil, 3, way(10, packedList(1), packedList(2), 1, 2, 3))
	ways = field(ways, 3, way(11, packedList(1, 3), packedList(2, 4), 2, 4, 5))
	ways = field(ways, 3, way(12, packedList(13), packedList(4), 1, 5))
	relation := field(field(number(nil, 1, 20), 2, packedList(7, 8)), 3, packedList(8, 9))
	relation = field(field(field(relation, 8, packedList(10, 11, 12)), 9, deltas(10, 2, 11)), 10, packedList(1, 0, 1))
	// The groups come before the table, which the format allows.
	data := field(field(field(nil, 2, ways), 2, field(nil, 4, relation)), 1, table)
	return f.block("OSMData", data, zipped).Bytes()
}

const smallXML = `<?xml version="1.0" encoding="UTF-8"?>
<osm version="0.6">
 <bounds minlat="48" minlon="9" maxlat="49" maxlon="10"/>
 <node id="1" lat="48" lon="9"/>
 <node id="2" lat="48.0" lon="9.001"/>
 <node id="3" lat="48.0" lon="9.002" visible="true"><tag k="name" v="&#246; &amp; x"/></node>
 <node id="4" lat="48.001" lon="9.001"><tag k="barrier" v="gate"/></node>
 <node id="5" lat="48.002" lon="9.001"/>
 <node id="6" visible="false"/>
 <!-- a comment -->
 <way id="10"><nd ref="1"/><nd ref="2"/><nd ref="3"/><tag k="highway" v="residential"/></way>
 <way id="11"><nd ref="2"/><nd ref="4"/><nd ref="5"/><tag k="highway" v="residential"/><tag k="oneway" v="yes"/></way>
 <way id="12"><nd ref="1"/><nd ref="5"/><tag k="building" v="yes"/></way>
 <relation id="20"><member type="way" ref="10" role="from"/><member type="node" ref="2" role="via"/><member type="way" ref="11" role="to"/>
  <tag k="type" v="restriction"/><tag k="restriction" v="no_left_turn"/></relation>
</osm>`
