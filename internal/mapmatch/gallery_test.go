package mapmatch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"milepost/internal/picture"
	"milepost/test/goldentest"
)

const (
	galleryFolder = "../../docs/gallery"
	galleryPage   = "../../docs/gallery.md"
)

// draw holds the drive's picture to the one in the gallery. The pictures show what the tests of M1 to M50 match, each drawn by its own test.
func (d *drive) draw(id int, notes ...string) {
	d.t.Helper()
	golden(d.t, filepath.Join(galleryFolder, pictureName(id)), d.sketch(fmt.Sprintf("M%d: %s", id, kinds()[id-1].title), notes))
}

func pictureName(id int) string { return fmt.Sprintf("m%02d.svg", id) }

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if goldentest.Rewriting() {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s shows something else than was matched: make gallery, and look at what changed", filepath.Base(name))
	}
}

// M1 to M50: the page has an entry with a picture for each kind, and there is no picture that it does not show.
func TestGallery(t *testing.T) {
	golden(t, galleryPage, page())
	golden(t, filepath.Join(galleryFolder, "legend.svg"), legend())
	want := []string{"legend.svg"}
	for i := range kinds() {
		want = append(want, pictureName(i+1))
	}
	entries, err := os.ReadDir(galleryFolder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) && !goldentest.Rewriting() {
		t.Errorf("the folder holds %v, want %v", got, want)
	}
	if n := len(kinds()); n != 50 {
		t.Errorf("%d kinds, want 50", n)
	}
}

func page() []byte {
	var b strings.Builder
	b.WriteString(`# Failure gallery

The fifty ways in which map matchers fail, by the reports of their users, each on
the smallest map that shows it: what comes in, and what is made of it here. Every
picture is drawn by the test that proves its requirement (` + "`TestM01_NoSwitchBetweenParallelRoads`" + `
and its neighbours in ` + "`internal/mapmatch`" + `) from what the matcher said; the test fails
when it says something else. ` + "`make gallery`" + ` draws them anew.

![Legend](gallery/legend.svg)
`)
	for i, k := range kinds() {
		fmt.Fprintf(&b, "\n## M%d: %s\n\n- Elsewhere: %s\n- Here: %s\n\n![M%d: %s](gallery/%s)\n", i+1, k.title, k.elsewhere, k.ours, i+1, k.title, pictureName(i+1))
	}
	return []byte(b.String())
}

// legend explains the signs.
func legend() []byte {
	s := picture.New(pictureWidth, 116)
	const ink, red, flag = "#222222", "#cc2222", "#8e2a6b"
	p := panel{SVG: s}
	column := func(i int) float64 { return 24 + 236*float64(i) }
	words := func(i, row int, text string) {
		s.Write(picture.Point{X: column(i) + 34, Y: 26 + 22*float64(row)}, text, picture.Text{Size: 12, Colour: "#333333"})
	}
	at := func(i, row int) picture.Point { return picture.Point{X: column(i) + 10, Y: 22 + 22*float64(row)} }
	bar := func(at picture.Point, style picture.Style) {
		s.Line([]picture.Point{{X: at.X - 12, Y: at.Y}, {X: at.X + 14, Y: at.Y}}, style)
	}
	s.Ellipse(at(0, 0), 9, 9, picture.Style{Fill: "#56b4e9", Opacity: .22})
	s.Ellipse(at(0, 0), 3, 3, picture.Style{Fill: "#0b3d5c"})
	words(0, 0, "observation, its accuracy")
	bar(at(0, 1), picture.Style{Stroke: "#a8a8a8", Width: 9, Round: true})
	bar(at(0, 1), picture.Style{Stroke: "#ffffff", Width: 7, Round: true})
	p.arrow(at(0, 1), 1, 0, "#8a8a8a", 4)
	words(0, 1, "road, one-way")
	s.Ellipse(at(0, 2), 7, 7, picture.Style{Fill: "#ffffff", Stroke: red, Width: 2})
	words(0, 2, "turn restriction")
	p.arrow(at(0, 3), 0, -1, red, 7)
	words(0, 3, "something out of view")
	bar(at(1, 0), picture.Style{Stroke: picture.Colour(0), Width: 4, Opacity: .75, Round: true})
	words(1, 0, "driven; a colour a leg")
	bar(at(1, 1), picture.Style{Stroke: picture.Colour(0), Width: 4, Opacity: .75, Round: true, Dash: "2 8"})
	words(1, 1, "driven, inferred")
	s.Rect(picture.Point{X: at(1, 2).X - 12, Y: at(1, 2).Y - 6}, picture.Point{X: at(1, 2).X + 14, Y: at(1, 2).Y + 6}, picture.Style{Stroke: flag, Width: 1})
	words(1, 2, "flag of the way")
	s.Line([]picture.Point{{X: at(1, 3).X, Y: at(1, 3).Y - 9}, {X: at(1, 3).X, Y: at(1, 3).Y + 9}}, picture.Style{Stroke: red, Width: 3})
	words(1, 3, "break, with its reason")
	s.Ellipse(at(2, 0), 3, 3, picture.Style{Fill: ink, Stroke: ink, Width: 1})
	words(2, 0, "place of a matched one")
	s.Ellipse(at(2, 1), 3, 3, picture.Style{Fill: "#ffffff", Stroke: ink, Width: 1})
	words(2, 1, "placed from its neighbours")
	for _, d := range []float64{1, -1} {
		s.Line([]picture.Point{{X: at(2, 2).X - 5, Y: at(2, 2).Y - d*5}, {X: at(2, 2).X + 5, Y: at(2, 2).Y + d*5}}, picture.Style{Stroke: red, Width: 2})
	}
	words(2, 2, "outlier; grey: too late")
	s.Ellipse(at(2, 3), 4.5, 4.5, picture.Style{Stroke: "#d55e00", Width: 2, Fill: "#ffffff"})
	words(2, 3, "off the road")
	return s.Bytes()
}
