package roadnet

// The road classes. Zero is no class.
const (
	ClassMotorway Class = iota + 1
	ClassTrunk
	ClassPrimary
	ClassSecondary
	ClassTertiary
	ClassUnclassified
	ClassResidential
	ClassLivingStreet
	ClassRoad // highway=road: not yet classified by the mappers
	ClassService
	ClassTrack
	ClassPedestrian // for motor vehicles only where a tag allows them
	ClassFerry
	ClassBusway
	ClassCycleway
	ClassFootway
	ClassPath
	ClassBridleway
	ClassSteps

	numClasses = 20
)

// String returns the value of OSM's highway tag, or "ferry".
func (c Class) String() string {
	switch c {
	case ClassMotorway:
		return "motorway"
	case ClassTrunk:
		return "trunk"
	case ClassPrimary:
		return "primary"
	case ClassSecondary:
		return "secondary"
	case ClassTertiary:
		return "tertiary"
	case ClassUnclassified:
		return "unclassified"
	case ClassResidential:
		return "residential"
	case ClassLivingStreet:
		return "living_street"
	case ClassRoad:
		return "road"
	case ClassService:
		return "service"
	case ClassTrack:
		return "track"
	case ClassPedestrian:
		return "pedestrian"
	case ClassFerry:
		return "ferry"
	case ClassBusway:
		return "busway"
	case ClassCycleway:
		return "cycleway"
	case ClassFootway:
		return "footway"
	case ClassPath:
		return "path"
	case ClassBridleway:
		return "bridleway"
	case ClassSteps:
		return "steps"
	default:
		return "unknown"
	}
}

// classOf reads a highway tag. Those of roads that do not exist yet or any more, and of what is no way, have no class.
func classOf(highway string) (c Class, link bool) {
	switch highway {
	case "motorway":
		return ClassMotorway, false
	case "motorway_link":
		return ClassMotorway, true
	case "trunk":
		return ClassTrunk, false
	case "trunk_link":
		return ClassTrunk, true
	case "primary":
		return ClassPrimary, false
	case "primary_link":
		return ClassPrimary, true
	case "secondary":
		return ClassSecondary, false
	case "secondary_link":
		return ClassSecondary, true
	case "tertiary":
		return ClassTertiary, false
	case "tertiary_link":
		return ClassTertiary, true
	case "unclassified", "minor":
		return ClassUnclassified, false
	case "residential":
		return ClassResidential, false
	case "living_street":
		return ClassLivingStreet, false
	case "road":
		return ClassRoad, false
	case "service":
		return ClassService, false
	case "track":
		return ClassTrack, false
	case "pedestrian":
		return ClassPedestrian, false
	case "busway":
		return ClassBusway, false
	case "cycleway":
		return ClassCycleway, false
	case "footway":
		return ClassFootway, false
	case "path":
		return ClassPath, false
	case "bridleway":
		return ClassBridleway, false
	case "steps":
		return ClassSteps, false
	default:
		return 0, false
	}
}

// small says that a road yields to the others at a crossing: a yard's drive, a track, a path.
func (c Class) small() bool { return c >= ClassService && c != ClassBusway }
