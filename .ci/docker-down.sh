#!/usr/bin/env bash
# Ends the Docker daemon that docker-up.sh started, if it did. Its images stay
# in the cache.
set -uo pipefail
pidfile=${MILEPOST_CI_DOCKER:?}/dockerd.pid
[ -s "$pidfile" ] || exit 0
pid=$(cat "$pidfile")
kill "$pid" 2>/dev/null || exit 0
for _ in $(seq 100); do
	kill -0 "$pid" 2>/dev/null || exit 0
	sleep 0.1
done
kill -9 "$pid" 2>/dev/null
exit 0
