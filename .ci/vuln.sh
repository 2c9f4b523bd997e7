#!/usr/bin/env bash
# govulncheck; where its database is out of reach, says so and passes.
# VULNDB=file:///dir checks against another database.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
db=${VULNDB:-https://vuln.go.dev}
if [[ $db == https://* ]] && ! curl -sSf --max-time 20 -o /dev/null "$db/index/db.json"; then
	echo "govulncheck: not run, its database $db is out of reach"
	exit 0
fi
go tool -modfile=tools/govulncheck.mod govulncheck -db "$db" ./...
