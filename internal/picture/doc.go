// Package picture writes SVG pictures for the documents: shapes (SVG) and line charts (Chart).
//
// The same calls give the same bytes: coordinates are rounded to tenths of a pixel, nothing depends on time, fonts or order of maps. Pictures
// have a white ground of their own, so that they are legible on dark pages too, and no script, link or image.
//
// No goroutines, no input or output.
package picture
