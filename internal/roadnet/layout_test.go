package roadnet

import (
	"testing"
	"unsafe"
)

// The arrays of a graph file are seen as Go's structs: their layouts are the file's.
func TestFileLayout(t *testing.T) {
	for what, pair := range map[string][2]uintptr{
		"Edge":           {unsafe.Sizeof(Edge{}), edgeSize},
		"Edge.To":        {unsafe.Offsetof(Edge{}.To), 4},
		"Edge.Way":       {unsafe.Offsetof(Edge{}.Way), 8},
		"Edge.LengthCM":  {unsafe.Offsetof(Edge{}.LengthCM), 16},
		"Edge.Twin":      {unsafe.Offsetof(Edge{}.Twin), 20},
		"Edge.Component": {unsafe.Offsetof(Edge{}.Component), 24},
		"Edge.SpeedKMH":  {unsafe.Offsetof(Edge{}.SpeedKMH), 28},
		"Edge.Lanes":     {unsafe.Offsetof(Edge{}.Lanes), 29},
		"Edge.Layer":     {unsafe.Offsetof(Edge{}.Layer), 30},
		"Edge.Class":     {unsafe.Offsetof(Edge{}.Class), 31},
		"Edge.Flags":     {unsafe.Offsetof(Edge{}.Flags), 32},
		"Edge.Access":    {unsafe.Offsetof(Edge{}.Access), 34},
		"Edge.Private":   {unsafe.Offsetof(Edge{}.Private), 35},
		"Edge.Contra":    {unsafe.Offsetof(Edge{}.Contra), 36},
		"vertex":         {unsafe.Sizeof(vertex{}), 12},
		"vertex.lat":     {unsafe.Offsetof(vertex{}.lat), 4},
		"vertex.along":   {unsafe.Offsetof(vertex{}.along), 8},
		"ref":            {unsafe.Sizeof(ref{}), 8},
		"ref.vertex":     {unsafe.Offsetof(ref{}.vertex), 4},
		"turnRule":       {unsafe.Sizeof(turnRule{}), 8},
		"turnRule.ban":   {unsafe.Offsetof(turnRule{}.ban), 4},
		"turnRule.wall":  {unsafe.Offsetof(turnRule{}.wall), 5},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %d, want %d", what, pair[0], pair[1])
		}
	}
}
