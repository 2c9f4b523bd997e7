#!/usr/bin/env bash
# Really starts docker-compose.yml with the image that image.sh has built, plays a
# trace into it, sees it done, and takes all down again. Ports stay inside: the
# machine may use them for something else.
#
# docker compose is what the daemon's client has, else the program that "make
# compose" has built into the cache; without either it says so and ends well.
# Prometheus and Grafana are left out where their images cannot be pulled:
# tools/composecheck reads their part.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
docker=$([ -x /usr/bin/docker ] && echo /usr/bin/docker || echo docker)
cache=${MILEPOST_CACHE:-$([ "$(id -u)" = 0 ] && echo /var/cache/milepost || echo "${XDG_CACHE_HOME:-$HOME/.cache}/milepost")}

without() {
	echo "compose: not started, $*"
	exit 0
}

if [ "${1:-}" = build ]; then
	"$docker" compose version >/dev/null 2>&1 && exit 0
	[ -x "$cache/docker-compose" ] && exit 0
	mkdir -p "$cache" && nice go build -modfile=tools/compose.mod -trimpath -o "$cache/docker-compose.$$" \
		github.com/docker/compose/v2/cmd && mv "$cache/docker-compose.$$" "$cache/docker-compose"
	exit
fi
timeout 10s "$docker" info >/dev/null 2>&1 || without "no Docker daemon"
"$docker" image inspect milepost:ci >/dev/null 2>&1 || without "no image milepost:ci (.ci/image.sh)"
if "$docker" compose version >/dev/null 2>&1; then
	compose=("$docker" compose)
elif [ -x "$cache/docker-compose" ]; then
	compose=("$cache/docker-compose")
else
	without "docker compose is not at hand (make compose builds it)"
fi
work=$(mktemp -d)
project=milepost-ci-$$
# The map that the tests have: the one of Delaware in a Go module.
MAP=$(go mod download -json github.com/paulmach/osm@v0.8.0 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')/testdata/delaware-latest.osm.pbf
export MAP MILEPOST_IMAGE=milepost:ci
printf 'services:\n' >"$work/ports.yml"
for service in kafka postgres orchestrator; do
	printf '  %s:\n    ports: !reset []\n' "$service" >>"$work/ports.yml"
done
compose+=(-p "$project" -f docker-compose.yml -f "$work/ports.yml")
trap '"${compose[@]}" down --volumes --timeout 20 >"$work/down.log" 2>&1 || cat "$work/down.log"; rm -rf "$work"' EXIT

fail() {
	echo "compose: $*"
	"${compose[@]}" ps -a
	"${compose[@]}" logs --tail 30
	exit 1
}

timeout 5m "${compose[@]}" up --no-build --detach --wait >"$work/up.log" 2>&1 || {
	tail -n 20 "$work/up.log"
	fail "up failed"
}
# Forty positions of two vehicles on US 13 south of Dover, a second apart.
{
	echo "vehicle,time,lon,lat"
	for i in $(seq 0 19); do
		printf 'v%d,2026-01-01T00:00:%02dZ,-75.5%04d,39.1%04d\n' 1 "$i" $((300 + i)) $((300 + 2 * i)) 2 "$i" $((300 + i)) $((380 - 2 * i))
	done
} >"$work/trace.csv"
orchestrator=("${compose[@]}" exec -T orchestrator /usr/local/bin/orchestrator)
timeout 1m "${orchestrator[@]}" replay --input csv --json - <"$work/trace.csv" || fail "the trace could not be played"
# done_of adds up the frontiers: next offsets to do.
done_of() { timeout 20s "${orchestrator[@]}" status --json | grep -o '"frontier":[0-9]*' | awk -F: '{n += $2} END {print n + 0}'; }
for _ in $(seq 60); do
	[ "$(done_of)" = 40 ] && break
	sleep 1
done
[ "$(done_of)" = 40 ] || fail "$(done_of) of 40 observations are done"
timeout 1m "${compose[@]}" stop orchestrator >/dev/null 2>&1 || fail "the worker does not stop"
worker=$("${compose[@]}" ps -aq orchestrator)
code=$("$docker" inspect --format '{{.State.ExitCode}}' "$worker")
[ "$code" = 0 ] || fail "the worker's exit code is $code"
echo "compose: up, 40 observations done, stopped with exit code 0"
