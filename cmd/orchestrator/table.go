package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// plural is a number with its noun.
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// table prints rows whose cells are separated by tabs, in columns. The first error stays and is flush's.
type table struct {
	w   *tabwriter.Writer
	err error
}

func newTable(out io.Writer) *table { return &table{w: tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)} }

func (t *table) row(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format+"\n", args...)
	}
}

func (t *table) flush() error {
	if t.err != nil {
		return t.err
	}
	return t.w.Flush()
}
