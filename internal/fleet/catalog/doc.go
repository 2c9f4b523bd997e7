// Package catalog reads region catalogs: TOML files that say which regions there are, which road map each works on, and which
// cells of the earth it serves. docs/formats/catalog.md describes the file.
//
// It reads bytes, not files, and loads no maps: the caller does. What a region's map contains is not its business.
//
// Invariants:
//
//	R1 A Catalog that Parse returns is whole: it has a region, no two regions cover one cell, no region overlaps its own coverage, and
//	   nothing in the file was passed over. There is no other way to make one.
//	R2 Parse reports everything that is wrong at once, each with its line (A7).
//	R3 A Catalog never changes. Region numbers are places in the file's order.
//
// Goroutines: none.
package catalog
