#!/usr/bin/env bash
# What is generated matches its source; go.mod is tidy; documents speak of what
# exists. Changes nothing in the tree.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
status=0
say() { printf '%s\n' "$*" && status=1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

go tool -modfile=tools/buf.mod buf lint || say "proto/: buf lint"
go tool -modfile=tools/buf.mod buf generate --output "$scratch" || say "buf generate failed"
for file in internal/wire/*.pb.go; do
	diff -u -I '^//.*protoc' "$file" "$scratch/$file" || say "$file differs from proto/: make generate"
done

go mod tidy -diff || say "go.mod is not tidy: go mod tidy"
go mod verify >/dev/null || say "a module in the cache differs from go.sum"
go test -C tools/promcheck -count=1 ./... || say "deploy/ asks for metrics that do not exist: go test -C tools/promcheck ."
go test -C tools/composecheck -count=1 ./... || say "docker-compose.yml or what it mounts: go test -C tools/composecheck ."
go test -count=1 ./cmd/orchestrator -run 'TestConfigPage|TestHelp|TestMetricsList' || say "docs/config.md, help or list of metrics: make generate, or -rewrite"
go test -count=1 . || say "the rules of arch_test.go and docs_test.go"
if ! make requirements >"$scratch/requirements"; then
	grep -B 1 'MISSING\|NOT NEEDED' "$scratch/requirements"
	say "a requirement without a test: make requirements"
fi
for script in .ci/*.sh .ci/run spec/*.sh; do
	bash -n "$script" || say "$script does not parse"
done
if command -v shellcheck >/dev/null; then
	shellcheck .ci/*.sh .ci/run .ci/images/*.sh spec/*.sh || say "shellcheck"
else
	echo "shellcheck: not at hand, scripts were only parsed"
fi
exit "$status"
