#!/usr/bin/env bash
# Fuzzes every fuzz target for the given time, or number of inputs (1000x), each. CI counts: when its time is up Go's own fuzzing now and
# then takes the end of the time for a failure ("context deadline exceeded", golang/go#75804, mended in Go 1.27).
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}
status=0
while IFS=: read -r file target; do
	echo "--- $file $target"
	go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$time" || status=1
done < <(grep -rEo --include='*_test.go' '^func Fuzz\w+' internal cmd | sed -E 's/func //')
exit "$status"
