package matchapi

// AttributeNames, Costings and ShapeFormats are what the description must name.
func AttributeNames() []string { return attributeNames() }

// Costings lists the values of costing.
func Costings() []string { return costings() }

// ShapeFormats lists the values of shape_format.
func ShapeFormats() []string { return shapeFormats() }
