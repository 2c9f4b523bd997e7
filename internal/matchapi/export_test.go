package matchapi

import "io"

// AttributeNames, Costings and ShapeFormats are what the description must name.
func AttributeNames() []string { return attributeNames() }

// Costings lists the values of costing.
func Costings() []string { return costings() }

// ShapeFormats lists the values of shape_format.
func ShapeFormats() []string { return shapeFormats() }

// Decode reads a request and gives its number of points.
func Decode(in io.Reader, maxPoints int) (points int, p *Problem) {
	r, p := decode(in, maxPoints)
	if p != nil {
		return 0, p
	}
	return len(r.points), nil
}
