// Package tracefile reads GPS traces: GPX, CSV, JSON lines, arrays of JSON objects, GeoJSON points and the two tables that FMM reads, plain
// or packed with gzip or bzip2 (the content says which). It streams: its memory does not grow with the file, nor with any line or element of it.
//
// A bad row never hides the good ones: it becomes a *RowError that names file, line, column and reason, and reading goes on. Only
// what leaves no next row to find (a truncated GPX, a CSV without its columns, a broken archive) ends the file, with a RowError that is
// marked Fatal.
//
// Invariants:
//
//	T1 Every row becomes exactly one Fix or one RowError, in the file's order. A row that is a whole trajectory becomes one for each of
//	   its points, or one RowError for all.
//	T2 A Fix has finite coordinates in range that are not both 0; its vehicle is not empty.
//	T3 At most Options.MaxRow bytes of a row or element are held; a longer one is an error of its own and is skipped.
//	   A trajectory may have more where Options.MaxRow is left open.
//	T4 Errors name the file by its last part only, and never repeat its content beyond one short number or word.
//
// Nothing here starts a goroutine.
package tracefile
