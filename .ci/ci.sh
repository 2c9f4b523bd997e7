#!/usr/bin/env bash
# Runs every stage in order, each with its time, and goes on after a failure so
# that one run tells everything. Ends with the slowest stages and the totals of
# all tests; exits non-zero if anything failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

logs=$(mktemp -d "${TMPDIR:-/tmp}/milepost-ci.XXXXXX")
export TOTALS="$logs/totals"
: >"$TOTALS"
: >"$logs/times"
failed=()
started=$(date +%s)

stage() { # stage NAME LIMIT COMMAND...
	local name=$1 limit=$2 begin=$EPOCHSECONDS rc=0
	shift 2
	printf '\n=== %s\n' "$name"
	timeout --kill-after=30s "$limit" "$@" || rc=$?
	local took=$((EPOCHSECONDS - begin))
	echo "$took $name" >>"$logs/times"
	if [ "$rc" -eq 0 ]; then
		printf '=== %s: ok, %d s\n' "$name" "$took"
		return
	fi
	[ "$rc" -eq 124 ] && echo "timed out after $limit"
	printf '=== %s: FAILED (%d), %d s\n' "$name" "$rc" "$took"
	failed+=("$name")
}

# Images take minutes of network and little processor: beside the first stages.
# The daemon outlives this subshell; docker-down.sh ends it.
export MILEPOST_CI_DOCKER="$logs/docker"
nice .ci/docker-up.sh >"$logs/docker.log" 2>&1 &
docker=$!
# So is docker compose, where the machine has none: three minutes of one processor, once.
timeout 25m .ci/compose.sh build >"$logs/compose.log" 2>&1 &
compose=$!
trap '.ci/docker-down.sh' EXIT

stage build 15m make build
stage lint 25m make -k lint vet
stage verify 10m make verify
stage race 15m make test-race
stage amd64 10m make test-processors
stage model 8m make model
stage fuzz 12m make fuzz T=1000x
stage sim 10m make sim SEEDS="${SIM_SEEDS:-300}"
printf '\n=== wait for the container images\n'
wait "$docker"
tail -n 3 "$logs/docker.log"
# shellcheck disable=SC1091
[ -f "$MILEPOST_CI_DOCKER/env" ] && . "$MILEPOST_CI_DOCKER/env"
stage test 20m make test
stage integration-local 15m env MILEPOST_STACK=local make test-integration
stage failpoints 10m make failpoints
stage takeover 10m make takeover
stage chaos 10m make chaos SECONDS=40
stage image 12m .ci/image.sh
wait "$compose"
tail -n 3 "$logs/compose.log"
stage compose 8m .ci/compose.sh
stage vuln 5m make vuln

printf '\nslowest stages:\n'
sort -rn "$logs/times" | head -n 6 | awk '{printf "  %5d s  %s\n", $1, $2}'
printf '%d s in all; logs in %s\n' "$(($(date +%s) - started))" "$logs"
awk '{p += $1; f += $2; s += $3} END {printf "%d passed, %d failed, %d skipped\n", p, f, s}' "$TOTALS"
if [ "${#failed[@]}" -gt 0 ]; then
	printf 'FAIL: %s\n' "${failed[*]}"
	exit 1
fi
echo "ok: every stage passed"
