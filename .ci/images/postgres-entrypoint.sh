#!/bin/bash
# What the official image does with its environment, as far as we use it.
set -euo pipefail
bin=/usr/lib/postgresql/15/bin
data=/var/lib/postgresql/data
user=${POSTGRES_USER:-postgres}
if [ ! -s "$data/PG_VERSION" ]; then
	mkdir -p "$data"
	"$bin/initdb" -D "$data" -U "$user" -E UTF8 --locale=C.UTF-8 --auth=scram-sha-256 \
		--pwfile=<(printf '%s\n' "${POSTGRES_PASSWORD:?}")
	echo "host all all all scram-sha-256" >>"$data/pg_hba.conf"
	database=${POSTGRES_DB:-$user}
	if [ "$database" != postgres ]; then
		echo "CREATE DATABASE \"$database\";" | "$bin/postgres" --single -jE -D "$data" postgres >/dev/null
	fi
fi
exec "$bin/postgres" -D "$data" -c listen_addresses='*' "$@"
