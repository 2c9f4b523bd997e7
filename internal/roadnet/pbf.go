package roadnet

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Limits of the format itself: blocks beyond them are corrupt.
const (
	maxBlockHeader = 64 << 10
	maxBlock       = 32 << 20
)

// pbfReader reads a file's blocks one after the other. It has its own decoder of the format because the common one ends the process on
// damaged input, from a goroutine of its own, and takes as much memory as a damaged header asks for.
type pbfReader struct {
	r      io.Reader
	offset int64
	header bytes.Buffer
	packed bytes.Buffer
	data   bytes.Buffer
	zlib   io.ReadCloser
}

func (in *importer) readPBF(ctx context.Context, r io.Reader) error {
	p := &pbfReader{r: r}
	for n := 0; !in.finished(); n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := p.offset
		kind, err := p.next()
		if errors.Is(err, io.EOF) && p.offset == at {
			return nil
		}
		if err == nil {
			err = in.block(p, kind, n)
		}
		if err != nil {
			return fmt.Errorf("block at byte %d: %w", at, err)
		}
	}
	return nil
}

// block reads the n-th block.
func (in *importer) block(p *pbfReader, kind string, n int) error {
	switch {
	case kind == "OSMHeader":
		data, err := p.unpack()
		if err != nil {
			return err
		}
		if in.pass == passWays {
			in.hasNodes = append(in.hasNodes, false)
		}
		return checkHeader(data)
	case n == 0:
		return fmt.Errorf("%w: the first block is no OSMHeader", ErrCorrupt)
	case kind != "OSMData": // the format says to pass over what one does not know
		if in.pass == passWays {
			in.hasNodes = append(in.hasNodes, false)
		}
		return nil
	case in.pass == passNodes && n < len(in.hasNodes) && !in.hasNodes[n]:
		return nil
	}
	data, err := p.unpack()
	if err != nil {
		return err
	}
	b := pbfBlock{in: in, granularity: 100}
	if err := b.read(data); err != nil {
		return err
	}
	if in.pass == passWays {
		in.hasNodes = append(in.hasNodes, b.nodes)
	}
	return nil
}

// next reads one block's header and its packed content. At the end of the file it returns io.EOF without having read anything.
func (p *pbfReader) next() (kind string, err error) {
	var size [4]byte
	n, err := io.ReadFull(p.r, size[:])
	p.offset += int64(n)
	if err != nil {
		return "", err
	}
	length := binary.BigEndian.Uint32(size[:])
	if length > maxBlockHeader {
		return "", fmt.Errorf("%w: a block header of %d bytes", ErrCorrupt, length)
	}
	if err := p.fill(&p.header, int64(length)); err != nil {
		return "", err
	}
	var dataSize uint64
	f := fields{b: p.header.Bytes()}
	for f.next() {
		switch f.num {
		case 1:
			kind = string(f.val)
		case 3:
			dataSize = f.n
		}
	}
	if f.err != nil {
		return "", f.err
	}
	if dataSize > maxBlock {
		return "", fmt.Errorf("%w: a block of %d bytes", ErrCorrupt, dataSize)
	}
	return kind, p.fill(&p.packed, int64(dataSize))
}

// fill reads exactly n bytes, and takes no more memory than the file really has.
func (p *pbfReader) fill(buf *bytes.Buffer, n int64) error {
	buf.Reset()
	got, err := io.CopyN(buf, p.r, n)
	p.offset += got
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("cut short: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// unpack returns the content of the last block. It is valid until the next one.
func (p *pbfReader) unpack() ([]byte, error) {
	f := fields{b: p.packed.Bytes()}
	for f.next() {
		switch f.num {
		case 1:
			return f.val, nil
		case 3:
			return p.inflate(f.val)
		case 4, 5, 6, 7:
			return nil, fmt.Errorf("%w: packed by a method other than zlib (field %d)", ErrCorrupt, f.num)
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	return nil, fmt.Errorf("%w: a block without content", ErrCorrupt)
}

func (p *pbfReader) inflate(packed []byte) (data []byte, err error) {
	src := bytes.NewReader(packed)
	if p.zlib == nil {
		p.zlib, err = zlib.NewReader(src)
	} else if r, ok := p.zlib.(zlib.Resetter); ok {
		err = r.Reset(src, nil)
	}
	if err != nil {
		p.zlib = nil
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	p.data.Reset()
	if _, err := p.data.ReadFrom(io.LimitReader(p.zlib, maxBlock+1)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if p.data.Len() > maxBlock {
		return nil, fmt.Errorf("%w: a block of more than %d bytes", ErrCorrupt, maxBlock)
	}
	return p.data.Bytes(), nil
}

// checkHeader refuses files that need what this reader does not have.
func checkHeader(data []byte) error {
	f := fields{b: data}
	for f.next() {
		if f.num != 4 {
			continue
		}
		switch s := string(f.val); s {
		case "OsmSchema-V0.6", "DenseNodes":
		default:
			return fmt.Errorf("%w: the file needs %q", ErrNotOSM, s)
		}
	}
	return f.err
}

// pbfBlock is one block of objects and the table of its strings.
type pbfBlock struct {
	in          *importer
	granularity int64
	latOffset   int64
	lonOffset   int64
	strings     []string
	nodes       bool // it holds some

	refs    []int64
	tags    Tags
	members []Member
}

func (b *pbfBlock) read(data []byte) error {
	var groups [][]byte
	f := fields{b: data}
	for f.next() {
		switch f.num {
		case 1:
			if err := b.readStrings(f.val); err != nil {
				return err
			}
		case 2:
			groups = append(groups, f.val)
		case 17:
			b.granularity = int64(f.n)
		case 19:
			b.latOffset = int64(f.n)
		case 20:
			b.lonOffset = int64(f.n)
		}
	}
	if f.err != nil {
		return f.err
	}
	for _, g := range groups {
		if err := b.readGroup(g); err != nil {
			return err
		}
	}
	return nil
}

func (b *pbfBlock) readStrings(data []byte) error {
	all := string(data) // one allocation for the table
	f := fields{b: data}
	for f.next() {
		if f.num == 1 {
			end := len(data) - len(f.b)
			b.strings = append(b.strings, all[end-len(f.val):end])
		}
	}
	return f.err
}

func (b *pbfBlock) readGroup(data []byte) error {
	f := fields{b: data}
	ways := b.in.pass == passWays
	for f.next() {
		var err error
		switch {
		case f.num == 1 && ways, f.num == 2 && ways:
			b.nodes = true
		case f.num == 1:
			err = b.readNode(f.val)
		case f.num == 2:
			err = b.readDense(f.val)
		case f.num == 3 && ways:
			err = b.readWay(f.val)
		case f.num == 4 && ways:
			err = b.readRelation(f.val)
		}
		if err != nil {
			return err
		}
	}
	return f.err
}

// str returns an entry of the table.
func (b *pbfBlock) str(i uint64) (string, error) {
	if i >= uint64(len(b.strings)) {
		return "", fmt.Errorf("%w: string %d of %d", ErrCorrupt, i, len(b.strings))
	}
	return b.strings[i], nil
}

// readTags fills b.tags from two packed lists.
func (b *pbfBlock) readTags(keys, vals []byte) error {
	b.tags = b.tags[:0]
	k, v := packed{b: keys}, packed{b: vals}
	for k.next() {
		if !v.next() {
			return fmt.Errorf("%w: a key without a value", ErrCorrupt)
		}
		key, err := b.str(k.n)
		if err != nil {
			return err
		}
		val, err := b.str(v.n)
		if err != nil {
			return err
		}
		b.tags = append(b.tags, Tag{Key: key, Value: val})
	}
	return errors.Join(k.err, v.err)
}

func (b *pbfBlock) addNode(id, lat, lon int64, tags Tags) {
	b.in.b.AddNode(id, e7Of(b.lonOffset, b.granularity, lon), e7Of(b.latOffset, b.granularity, lat), tags)
}

// e7Of turns the format's units into 1e-7 degrees, to the nearest.
func e7Of(offset, granularity, v int64) int64 {
	nano := offset + granularity*v
	if nano < 0 {
		return (nano - 50) / 100
	}
	return (nano + 50) / 100
}

func (b *pbfBlock) readNode(data []byte) error {
	var id, lat, lon int64
	var keys, vals []byte
	f := fields{b: data}
	for f.next() {
		switch f.num {
		case 1:
			id = protowire.DecodeZigZag(f.n)
		case 2:
			keys = f.list(keys)
		case 3:
			vals = f.list(vals)
		case 8:
			lat = protowire.DecodeZigZag(f.n)
		case 9:
			lon = protowire.DecodeZigZag(f.n)
		}
	}
	if f.err != nil || !b.in.b.Needs(id) {
		return f.err
	}
	if err := b.readTags(keys, vals); err != nil {
		return fmt.Errorf("node %d: %w", id, err)
	}
	b.addNode(id, lat, lon, b.tags)
	return nil
}

// readDense reads the usual form of nodes: columns of differences.
func (b *pbfBlock) readDense(data []byte) error {
	var ids, lats, lons, keyVals packed
	f := fields{b: data}
	for f.next() {
		switch f.num {
		case 1:
			ids.b = f.list(ids.b)
		case 8:
			lats.b = f.list(lats.b)
		case 9:
			lons.b = f.list(lons.b)
		case 10:
			keyVals.b = f.list(keyVals.b)
		}
	}
	if f.err != nil {
		return f.err
	}
	var id, lat, lon int64
	for ids.next() {
		id += ids.signed()
		if !lats.next() || !lons.next() {
			return fmt.Errorf("node %d: %w: no place", id, ErrCorrupt)
		}
		lat += lats.signed()
		lon += lons.signed()
		if err := b.denseTags(&keyVals); err != nil {
			return fmt.Errorf("node %d: %w", id, err)
		}
		b.addNode(id, lat, lon, b.tags)
	}
	return errors.Join(ids.err, lats.err, lons.err)
}

// denseTags reads the next node's pairs, which end with a zero; a list that is empty altogether means no tags.
func (b *pbfBlock) denseTags(kv *packed) error {
	b.tags = b.tags[:0]
	for kv.next() && kv.n != 0 {
		key, err := b.str(kv.n)
		if err != nil {
			return err
		}
		if !kv.next() {
			return fmt.Errorf("%w: a key without a value", ErrCorrupt)
		}
		val, err := b.str(kv.n)
		if err != nil {
			return err
		}
		b.tags = append(b.tags, Tag{Key: key, Value: val})
	}
	return kv.err
}

func (b *pbfBlock) readWay(data []byte) error {
	var id int64
	var keys, vals []byte
	var refs packed
	f := fields{b: data}
	for f.next() {
		switch f.num {
		case 1:
			id = int64(f.n)
		case 2:
			keys = f.list(keys)
		case 3:
			vals = f.list(vals)
		case 8:
			refs.b = f.list(refs.b)
		}
	}
	if f.err != nil {
		return f.err
	}
	if ok, err := b.hasKey(keys, "highway", "route"); err != nil || !ok {
		return wrapObject("way", id, err)
	}
	if err := b.readTags(keys, vals); err != nil {
		return wrapObject("way", id, err)
	}
	b.refs = b.refs[:0]
	var ref int64
	for refs.next() {
		ref += refs.signed()
		b.refs = append(b.refs, ref)
	}
	b.in.b.AddWay(id, b.refs, b.tags)
	return wrapObject("way", id, refs.err)
}

// hasKey looks for keys before all tags are read: most ways are buildings.
func (b *pbfBlock) hasKey(keys []byte, wanted ...string) (bool, error) {
	k := packed{b: keys}
	for k.next() {
		s, err := b.str(k.n)
		if err != nil {
			return false, err
		}
		if slices.Contains(wanted, s) {
			return true, nil
		}
	}
	return false, k.err
}

func wrapObject(kind string, id int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %d: %w", kind, id, err)
}

func (b *pbfBlock) readRelation(data []byte) error {
	var id int64
	var keys, vals []byte
	var roles, refs, kinds packed
	f := fields{b: data}
	for f.next() {
		switch f.num {
		case 1:
			id = int64(f.n)
		case 2:
			keys = f.list(keys)
		case 3:
			vals = f.list(vals)
		case 8:
			roles.b = f.list(roles.b)
		case 9:
			refs.b = f.list(refs.b)
		case 10:
			kinds.b = f.list(kinds.b)
		}
	}
	if f.err != nil {
		return f.err
	}
	if err := b.readTags(keys, vals); err != nil {
		return wrapObject("relation", id, err)
	}
	if !isRestriction(b.tags) {
		return nil
	}
	if err := b.readMembers(roles, refs, kinds); err != nil {
		return wrapObject("relation", id, err)
	}
	b.in.b.AddRelation(id, b.members, b.tags)
	return nil
}

func (b *pbfBlock) readMembers(roles, refs, kinds packed) error {
	b.members = b.members[:0]
	var ref int64
	for refs.next() {
		ref += refs.signed()
		if !roles.next() || !kinds.next() {
			return fmt.Errorf("%w: a member without a role", ErrCorrupt)
		}
		role, err := b.str(roles.n)
		if err != nil {
			return err
		}
		m := Member{Ref: ref, Role: role}
		switch kinds.n {
		case 0:
			m.Kind = MemberNode
		case 1:
			m.Kind = MemberWay
		default:
			m.Kind = MemberRelation
		}
		b.members = append(b.members, m)
	}
	return errors.Join(refs.err, roles.err, kinds.err)
}

// fields walks over the fields of a protobuf message.
type fields struct {
	b   []byte // what is left
	num int32
	n   uint64 // of a varint field
	val []byte // of a field with a length
	typ protowire.Type
	err error
}

func (f *fields) next() bool {
	if len(f.b) == 0 || f.err != nil {
		return false
	}
	num, typ, n := protowire.ConsumeTag(f.b)
	if n < 0 {
		return f.fail(n)
	}
	f.b = f.b[n:]
	f.num, f.typ, f.n, f.val = int32(num), typ, 0, nil
	switch typ {
	case protowire.VarintType:
		f.n, n = protowire.ConsumeVarint(f.b)
	case protowire.BytesType:
		f.val, n = protowire.ConsumeBytes(f.b)
	case protowire.Fixed32Type, protowire.Fixed64Type, protowire.StartGroupType, protowire.EndGroupType:
		fallthrough
	default: // the two types that are not given out
		n = protowire.ConsumeFieldValue(num, typ, f.b)
	}
	if n < 0 {
		return f.fail(n)
	}
	f.b = f.b[n:]
	return true
}

func (f *fields) fail(code int) bool {
	f.err = fmt.Errorf("%w: %w", ErrCorrupt, protowire.ParseError(code))
	return false
}

// list adds the field to a packed list: the format allows lists in parts, and single values too.
func (f *fields) list(have []byte) []byte {
	part := f.val
	if f.typ == protowire.VarintType {
		part = protowire.AppendVarint(nil, f.n)
	}
	if len(have) == 0 {
		return part
	}
	return append(slices.Clip(have), part...)
}

// packed walks over a packed list of varints.
type packed struct {
	b   []byte
	n   uint64
	err error
}

func (p *packed) next() bool {
	if len(p.b) == 0 || p.err != nil {
		return false
	}
	v, n := binary.Uvarint(p.b)
	if n <= 0 {
		p.err = fmt.Errorf("%w: a broken number", ErrCorrupt)
		return false
	}
	p.n, p.b = v, p.b[n:]
	return true
}

// signed is the current number in zigzag coding.
func (p *packed) signed() int64 { return protowire.DecodeZigZag(p.n) }
