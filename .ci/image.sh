#!/usr/bin/env bash
# Builds the release image as a user would and runs it; with docker compose at
# hand, checks docker-compose.yml, too. Bases that no registry gives are stood
# in for: this machine's Go on Debian, and Debian.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
docker=$([ -x /usr/bin/docker ] && echo /usr/bin/docker || echo docker)
if ! timeout 10s "$docker" info >/dev/null 2>&1; then
	echo "image: not built, no Docker daemon"
	exit 0
fi
have() { "$docker" image inspect "$1" >/dev/null 2>&1 || timeout 2m "$docker" pull -q "$1" >/dev/null 2>&1; }

go_image=golang:1.26-bookworm
if ! have "$go_image"; then
	go_image=milepost-ci/go:$(go env GOVERSION)
	if ! have "$go_image"; then
		context=$(mktemp -d)
		trap 'rm -rf "$context"' EXIT
		cp -r "$(go env GOROOT)" "$context/go"
		cp -L /etc/ssl/certs/ca-certificates.crt "$context/"
		printf '%s\n' 'FROM milepost-ci/base:bookworm' 'COPY go /usr/local/go' \
			'COPY ca-certificates.crt /etc/ssl/certs/' 'ENV PATH=/usr/local/go/bin:/usr/bin:/bin' >"$context/Dockerfile"
		"$docker" build -q -t "$go_image" "$context" >/dev/null || exit 1
	fi
fi
run_image=gcr.io/distroless/static-debian12:nonroot
have "$run_image" || run_image=milepost-ci/base:bookworm
echo "image: built on $go_image and $run_image"
DOCKER_BUILDKIT=1 "$docker" build -q --build-arg GO_IMAGE="$go_image" --build-arg RUN_IMAGE="$run_image" \
	--build-arg VERSION=ci -t milepost:ci . || exit 1
said=$("$docker" run --rm --read-only --cap-drop ALL milepost:ci version) || exit 1
user=$("$docker" image inspect --format '{{.Config.User}}' milepost:ci)
echo "image: $said, as user $user"
[ "$user" != 0 ] && [ "$user" != root ] || exit 1
if "$docker" compose version >/dev/null 2>&1; then
	MAP=/dev/null "$docker" compose --profile observability config -q
else
	echo "docker compose: not at hand, docker-compose.yml not checked"
fi
