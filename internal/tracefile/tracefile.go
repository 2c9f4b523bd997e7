package tracefile

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"time"
)

// Fix is one position of a vehicle, as a file has it.
type Fix struct {
	Vehicle string
	Time    time.Time // zero: the file gives none
	Lon     float64   // degrees
	Lat     float64
	// Optional, NaN where not given.
	SpeedMPS   float64
	HeadingDeg float64 // clockwise from north
	AccuracyM  float64
	Line       int // where it begins in the file, from 1
}

// HasTime reports whether the file gives the fix a time.
func (f *Fix) HasTime() bool { return !f.Time.IsZero() }

// RowError says what is wrong with one row.
type RowError struct {
	File   string // last part of the name
	Line   int    // from 1; 0: the file as a whole
	Column string // as the file names it; empty: the row as a whole
	Place  string // in words, where the file has no columns: element <time>
	Reason string
	Fatal  bool // nothing more of the file can be read
}

func (e *RowError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	switch {
	case e.Place != "":
		b.WriteString(": " + e.Place)
	case e.Column != "":
		fmt.Fprintf(&b, ": column %q", e.Column)
	}
	return b.String() + ": " + e.Reason
}

// Format is a file's format.
type Format string

// The formats. Auto goes by the file's name.
const (
	Auto      Format = ""
	GPX       Format = "gpx"
	CSV       Format = "csv"
	JSONLines Format = "jsonl" // an object a line, or one array of objects
	GeoJSON   Format = "geojson"
	FMM       Format = "fmm" // FMM's CSV: id;geom[;timestamp], a WKT line a row, or id;x;y[;timestamp]
)

// Options say how a file is to be read.
type Options struct {
	Format  Format
	Columns Columns // names of ours that the file calls otherwise
	MaxRow  int     // bytes of a line or an element; 0: 1 MiB, and 32 MiB of a line that is a whole trajectory
}

const (
	defaultMaxRow = 1 << 20
	maxTrajectory = 32 << 20
)

// Read reads a trace: fixes, and a *RowError for every row that is none. The sequence ends after a RowError that is Fatal. name
// decides the format, where the options leave it open, and the vehicle's name, where the file gives none.
func Read(r io.Reader, name string, opts Options) iter.Seq2[Fix, error] {
	whole := opts.MaxRow
	if opts.MaxRow <= 0 {
		opts.MaxRow, whole = defaultMaxRow, maxTrajectory
	}
	return func(yield func(Fix, error) bool) {
		s := &source{file: filepath.Base(name), opts: opts, maxTrajectory: whole, yield: yield}
		s.vehicle = stem(s.file)
		plain, err := unpack(r)
		if err != nil {
			s.fatal(0, "", reasonOf(err))
			return
		}
		switch s.format() {
		case GPX:
			s.gpx(plain)
		case CSV, FMM:
			s.csv(plain)
		case JSONLines, GeoJSON:
			s.json(plain)
		case Auto:
			fallthrough
		default:
			s.fatal(0, "", fmt.Sprintf("unknown format %.20q: want gpx, csv, jsonl, geojson or fmm", string(s.opts.Format)))
		}
	}
}

// source is one reading of one file.
type source struct {
	file    string
	vehicle string // of rows that name none
	opts    Options
	fields  bool // the file has fields and no columns
	yield   func(Fix, error) bool

	maxTrajectory int
}

// row hands a row to the reader; false: it wants no more.
func (s *source) row(f Fix, err *RowError) bool {
	if err != nil {
		err.File = s.file
		if s.fields && err.Column != "" {
			err.Place = fmt.Sprintf("field %q", err.Column)
		}
		return s.yield(Fix{}, err)
	}
	return s.yield(f, nil)
}

func (s *source) fatal(line int, column, reason string) {
	s.row(Fix{}, &RowError{Line: line, Column: column, Reason: reason, Fatal: true})
}

// stem is the file's name without the endings that say how it is written.
func stem(file string) string {
	for _, packed := range []string{".gz", ".bz2"} {
		file = strings.TrimSuffix(file, packed)
	}
	if s := strings.TrimSuffix(file, filepath.Ext(file)); s != "" {
		return s
	}
	if file == "" || file == "." {
		return "trace"
	}
	return file
}

func (s *source) format() Format {
	if s.opts.Format != Auto {
		return s.opts.Format
	}
	name := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(s.file), ".gz"), ".bz2")
	switch filepath.Ext(name) {
	case ".gpx":
		return GPX
	case ".csv", ".tsv", ".txt":
		return CSV
	case ".json", ".jsonl", ".ndjson":
		return JSONLines
	case ".geojson":
		return GeoJSON
	}
	s.opts.Format = Format(filepath.Ext(name))
	return s.opts.Format
}

// unpack takes gzip and bzip2 off.
func unpack(r io.Reader) (*bufio.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	head, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read: %w", err)
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("not a gzip file: %w", err)
		}
		return bufio.NewReaderSize(z, 64<<10), nil
	case bytes.HasPrefix(head, []byte("BZh")) && len(head) == 4 && head[3] >= '1' && head[3] <= '9':
		return bufio.NewReaderSize(bzip2.NewReader(b), 64<<10), nil
	}
	return b, nil
}

// reasonOf words a reader's error for people.
func reasonOf(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "the file ends in the middle: it is truncated"
	}
	return err.Error()
}

// NoTime is the error of a fix that needs a time and has none.
func NoTime(name string, line int) *RowError {
	return &RowError{File: filepath.Base(name), Line: line, Reason: "the fix has no time; give --assume-step, such as 1s, to assume one"}
}
