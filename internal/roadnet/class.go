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
	ClassPedestrian // only where motor vehicles are allowed by a tag
	ClassFerry
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
	default:
		return "unknown"
	}
}

// classOf reads a highway tag. Values that no car may use, and those of roads that do not exist yet or any more, have no class.
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
	default:
		return 0, false
	}
}

// freeFlow is the speed in km/h where no limit is tagged.
func (c Class) freeFlow(link bool) uint8 {
	if link {
		return c.linkSpeed()
	}
	switch c {
	case ClassMotorway:
		return 105
	case ClassTrunk:
		return 90
	case ClassPrimary:
		return 70
	case ClassSecondary:
		return 60
	case ClassTertiary:
		return 50
	case ClassUnclassified:
		return 45
	case ClassResidential:
		return 35
	case ClassRoad:
		return 30
	case ClassLivingStreet:
		return 12
	case ClassFerry:
		return 20
	case ClassPedestrian:
		return 8
	case ClassService, ClassTrack:
		return 15
	default:
		return 15
	}
}

func (c Class) linkSpeed() uint8 {
	switch c {
	case ClassMotorway:
		return 60
	case ClassTrunk:
		return 50
	case ClassPrimary:
		return 45
	case ClassSecondary:
		return 40
	case ClassTertiary, ClassUnclassified, ClassResidential, ClassLivingStreet, ClassRoad, ClassService, ClassTrack, ClassPedestrian, ClassFerry:
	}
	return 35
}
