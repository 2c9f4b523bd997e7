#!/usr/bin/env bash
# Brings a Docker daemon and the images for the integration tests, and writes
# the environment that uses them to $MILEPOST_CI_DOCKER/env. Where that cannot
# be had it says why and ends well: the tests then run on local processes.
#
# A daemon that runs already is used. Otherwise one is started, as root, with a
# data folder in the cache, so that images are built once a machine. Official
# images are pulled where a registry answers; else stand-ins are built from the
# Debian mirror and Maven Central.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

work=${MILEPOST_CI_DOCKER:?a folder for the environment and the logs}
cache=${MILEPOST_CACHE:-$([ "$(id -u)" = 0 ] && echo /var/cache/milepost || echo "${XDG_CACHE_HOME:-$HOME/.cache}/milepost")}
mirror=${MILEPOST_DEBIAN_MIRROR:-http://deb.debian.org/debian}
kafka=${MILEPOST_KAFKA_IMAGE:-apache/kafka:4.4.0}
postgres=${MILEPOST_POSTGRES_IMAGE:-postgres:17}
mkdir -p "$work" "$cache"

# Debian's client first: a wrapper of that name may stand before it.
docker=$([ -x /usr/bin/docker ] && echo /usr/bin/docker || command -v docker || echo docker)

without() {
	echo "no containers: $*; the integration tests run on local processes"
	exit 0
}

limited() { timeout --kill-after=10s "$@"; }

install_packages() {
	local missing=()
	[ -x /usr/sbin/dockerd ] || command -v dockerd >/dev/null || missing+=(docker.io)
	command -v debootstrap >/dev/null || missing+=(debootstrap)
	[ "${#missing[@]}" -eq 0 ] && return
	[ "$(id -u)" = 0 ] || without "no Docker daemon, and not root to install one"
	echo "installing ${missing[*]}"
	limited 5m apt-get update -q >/dev/null || without "apt-get update failed"
	DEBIAN_FRONTEND=noninteractive limited 10m apt-get install -yq --no-install-recommends "${missing[@]}" iptables >/dev/null ||
		without "apt-get install ${missing[*]} failed"
	docker=/usr/bin/docker
}

start_daemon() {
	if limited 10s "$docker" info >/dev/null 2>&1; then
		echo "using the Docker daemon that runs"
		return
	fi
	install_packages
	[ "$(id -u)" = 0 ] || without "no Docker daemon, and not root to start one"
	export DOCKER_HOST=unix://$cache/docker.sock
	if limited 10s "$docker" info >/dev/null 2>&1; then
		echo "using the daemon of an earlier run"
		return
	fi
	# setsid: it must outlive this script, but not the CI run (docker-down.sh).
	setsid dockerd --storage-driver=overlay2 --data-root "$cache/docker" --exec-root "$work/exec" \
		--pidfile "$work/dockerd.pid" -H "$DOCKER_HOST" >"$work/dockerd.log" 2>&1 &
	for _ in $(seq 60); do
		limited 5s "$docker" info >/dev/null 2>&1 && return
		kill -0 $! 2>/dev/null || break
		sleep 0.5
	done
	tail -n 5 "$work/dockerd.log"
	without "dockerd does not start"
}

have() { "$docker" image inspect "$1" >/dev/null 2>&1; }

pull() { have "$1" || limited 3m "$docker" pull -q "$1"; }

base_image() { # prints nothing; makes milepost-ci/base:bookworm
	have milepost-ci/base:bookworm && return
	echo "building the base image from $mirror"
	local root=$work/base
	limited 10m debootstrap --variant=minbase bookworm "$root" "$mirror" >"$work/debootstrap.log" 2>&1 || {
		tail -n 3 "$work/debootstrap.log"
		return 1
	}
	tar -C "$root" -c . | "$docker" import - milepost-ci/base:bookworm >/dev/null || return 1
	rm -rf "$root"
}

stand_in() { # NAME TAG: build .ci/images/NAME.Dockerfile
	have "$2" && return
	base_image || return 1
	echo "building $2"
	local context=$work/context-$1
	mkdir -p "$context"
	cp .ci/images/* "$context"
	if [ "$1" = kafka ]; then
		limited 10m mvn -q -B -f internal/devstack/kafka.pom.xml dependency:copy-dependencies \
			-DoutputDirectory="$context/jars" || return 1
	fi
	limited 10m "$docker" build -q --build-arg BASE=milepost-ci/base:bookworm -t "$2" \
		-f "$context/$1.Dockerfile" "$context" || return 1
	rm -rf "$context"
}

image() { # NAME OFFICIAL: sets the variable "chosen"
	if pull "$2" >/dev/null 2>&1; then
		chosen=$2
		return
	fi
	stand_ins=1
	chosen=milepost-ci/$1:$(cat ".ci/images/$1"* internal/devstack/kafka.pom.xml | sha256sum | cut -c1-12)
	stand_in "$1" "$chosen"
}

start_daemon
stand_ins=0
image postgres "$postgres" || without "the Postgres image cannot be had"
postgres=$chosen
image kafka "$kafka" || without "the Kafka image cannot be had"
kafka=$chosen
{
	# A daemon of this machine publishes ports on its loopback, also where this
	# machine looks like a container.
	[ -n "${DOCKER_HOST:-}" ] && echo "export DOCKER_HOST=$DOCKER_HOST TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1"
	echo "export MILEPOST_KAFKA_IMAGE=$kafka MILEPOST_POSTGRES_IMAGE=$postgres"
	# Without a registry the reaper's image is out of reach, too.
	[ "$stand_ins" = 1 ] && echo "export TESTCONTAINERS_RYUK_DISABLED=true"
	echo "export MILEPOST_STACK=containers"
} >"$work/env"
echo "containers: $kafka, $postgres"
