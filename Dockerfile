# The release image: one static binary without the embedded stack, not root.
# Both bases can be named, for mirrors: --build-arg GO_IMAGE=… RUN_IMAGE=…
ARG GO_IMAGE=golang:1.26-bookworm
ARG RUN_IMAGE=gcr.io/distroless/static-debian12:nonroot

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/gocache \
    GOCACHE=/gocache CGO_ENABLED=0 go build -trimpath -tags nodev -ldflags "-s -w -X main.version=${VERSION}" -o /orchestrator ./cmd/orchestrator

FROM ${RUN_IMAGE}
LABEL org.opencontainers.image.title="Milepost" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /orchestrator /usr/local/bin/orchestrator
USER 65532:65532
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/orchestrator"]
CMD ["run"]
