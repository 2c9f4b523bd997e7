package fleet

// Poison reasons: the closed list of why a raw record can never be decided (A3). They are metric labels.
const (
	PoisonNoValue       = "no_value"
	PoisonNoKey         = "no_key"
	PoisonBadKey        = "bad_key" // not UTF-8, holds a NUL, or too long
	PoisonKeyMismatch   = "key_mismatch"
	PoisonWrongSchema   = "wrong_schema" // a content type that is not JSON
	PoisonTooLarge      = "too_large"
	PoisonUndecodable   = "undecodable"
	PoisonNoCoordinates = "missing_coordinates"
	PoisonNonFinite     = "non_finite_coordinates"
	PoisonOutOfRange    = "coordinates_out_of_range"
	PoisonZero          = "zero_coordinates" // exactly (0,0): a receiver without a fix (M25)
	PoisonNoTime        = "missing_time"
	PoisonBadTime       = "invalid_time"
	PoisonTimeRange     = "time_out_of_range"
)

// PoisonReasons lists every poison reason.
func PoisonReasons() []string {
	return []string{
		PoisonNoValue, PoisonNoKey, PoisonBadKey, PoisonKeyMismatch, PoisonWrongSchema, PoisonTooLarge, PoisonUndecodable,
		PoisonNoCoordinates, PoisonNonFinite, PoisonOutOfRange, PoisonZero, PoisonNoTime, PoisonBadTime, PoisonTimeRange,
	}
}

// Reset reasons: the closed list of why a key's history is void (A11).
const (
	ResetStateLost   = "state_lost" // undecodable, of another schema, or of another graph
	ResetExpired     = "expired"
	ResetGap         = "gap"
	ResetTeleport    = "teleport"
	ResetOffRoad     = "off_road" // the vehicle left the network (M32)
	ResetDataLoss    = "data_loss"
	ResetGraphChange = "graph_change"
	ResetOperator    = "operator"
)

// ResetReasons lists every reset reason.
func ResetReasons() []string {
	return []string{ResetStateLost, ResetExpired, ResetGap, ResetTeleport, ResetOffRoad, ResetDataLoss, ResetGraphChange, ResetOperator}
}

// Terminal reasons: the closed list of why an observation is not matched (A11); they are dispositions too.
const (
	TerminalRegression  = "timestamp_regression"
	TerminalUnsupported = "unsupported_coverage"
	TerminalInternal    = "internal"
)

// TerminalReasons lists every terminal reason.
func TerminalReasons() []string {
	return []string{TerminalRegression, TerminalUnsupported, TerminalInternal}
}

// Dispositions of observations, in outputs. Every event has exactly one (F11).
const (
	Matched      = "matched"
	Standing     = "standing"
	Interpolated = "interpolated"
	OffRoad      = "off_road"
	Outlier      = "outlier"
	Voided       = "reset" // a reset was decided for the observation itself: it is not matched
)

// Dispositions lists every disposition: a solver's, the terminal reasons, and a bare reset's.
func Dispositions() []string {
	return append([]string{Matched, Standing, Interpolated, OffRoad, Outlier, Voided}, TerminalReasons()...)
}
