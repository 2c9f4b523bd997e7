# Milepost: what people and CI call. Tools are pinned in tools/*.mod and built
# into Go's build cache; nothing is installed into the system.

SHELL       := /bin/bash
.SHELLFLAGS := -o pipefail -ec
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

GO      ?= go
PKGS    ?= ./...
SEEDS   ?= 200
SEED    ?= $(shell date +%s)
T       ?= 10s
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
TOTALS  ?=
# Groups of docs/requirements.md of which every identifier has its test.
COMPLETE = A,F,I,M,P

tool     = $(GO) tool -modfile=tools/$(1).mod $(1)
REPORT   = $(GO) run ./tools/testreport $(if $(TOTALS),-totals $(TOTALS))
LDFLAGS  = -s -w -X main.version=$(VERSION)

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk 'BEGIN {FS = ":.*## "} {printf "  %-18s %s\n", $$1, $$2}'

.PHONY: build
build: ## build bin/orchestrator as it is released (without the embedded stack)
	CGO_ENABLED=0 $(GO) build -trimpath -tags nodev -ldflags '$(LDFLAGS)' -o bin/orchestrator ./cmd/orchestrator

.PHONY: demo
demo: ## 500 vehicles on Delaware's roads, with all they need, in this terminal
	@$(GO) build -o bin/orchestrator-dev ./cmd/orchestrator
	@exec bin/orchestrator-dev dev

.PHONY: dev
dev: ## the demo with your flags: make dev ARGS="--for 20s --json"
	@$(GO) build -o bin/orchestrator-dev ./cmd/orchestrator
	@exec bin/orchestrator-dev dev $(ARGS)

.PHONY: test
test: ## all tests that this machine can run; says what it could not run and why
	$(GO) run ./tools/withkafka $(GO) test -json -timeout 20m -tags integration $(PKGS) | $(REPORT)

.PHONY: test-race
test-race: ## unit tests under the race detector, with the invariants checked
	$(GO) test -json -race -short -tags invariants $(PKGS) | $(REPORT)

.PHONY: test-processors
test-processors: ## the matcher's bytes from processors that fuse multiply and add, and from those that do not
	for level in v1 v3; do GOAMD64=$$level $(GO) test -count=1 -run SameBytes ./internal/mapmatch || exit 1; done

.PHONY: test-integration
test-integration: ## the main job on a real Kafka and Postgres: in containers, else local processes
	$(GO) test -json -count=1 -timeout 20m -tags integration ./test/... | $(REPORT)

.PHONY: failpoints
failpoints: ## fail at each arrow of the commit protocol: 54 cells on a real Kafka and Postgres
	@mkdir -p bin
	$(GO) test -json -count=1 -timeout 20m -tags failpoint -parallel 6 ./test/failpoints -table $(CURDIR)/bin/failpoints.txt $(ARGS) | $(REPORT)
	@cat bin/failpoints.txt

.PHONY: takeover
takeover: ## kill -9 of an owner with a thousand and a million keys: from assignment to first output
	@mkdir -p bin
	$(GO) test -json -count=1 -timeout 20m -tags takeover ./test/takeover -table $(CURDIR)/bin/takeover.txt $(ARGS) | $(REPORT)
	@cat bin/takeover.txt

.PHONY: soak
soak: ## workers under load with a fault a minute; what they use stays flat: make soak MINUTES=30 RATE=2500 [OUT=docs]
	$(GO) test -count=1 -timeout 0 -tags soak -v -run TestSoak ./test/soak -minutes $(or $(MINUTES),30) -rate $(or $(RATE),500) $(if $(OUT),-out $(abspath $(OUT))) $(ARGS)

.PHONY: sim
sim: ## simulate the core with fresh seeds: make sim SEEDS=1000 [SEED=1]
	$(GO) test -json -count=1 -timeout 30m -run Sim -tags invariants ./internal/partition -seeds $(SEEDS) -seed $(SEED) | $(REPORT)

.PHONY: mutations
mutations: ## seeded faults that the simulator, scripts and protocol tests must catch: make mutations [SAMPLE=n]
	$(GO) test -json -count=1 -timeout 60m -run TestMutationsAreCaught ./test/mutations -sample $(or $(SAMPLE),1) | $(REPORT)

.PHONY: chaos
chaos: ## break real workers, Kafka and Postgres: make chaos SECONDS=60 [SEED=1] [RUNS=1] [BROKERS=1|3] [MODE=0..5, -2 in turn] [RATE=250]
	$(GO) run ./test/chaos -seconds $(or $(SECONDS),60) -seed $(SEED) -runs $(or $(RUNS),1) -brokers $(or $(BROKERS),1) \
		-mode $(or $(MODE),-1) -rate $(or $(RATE),250) -out bin/chaos

.PHONY: fuzz
fuzz: ## fuzz every decoder for T each: make fuzz T=30s, or T=1000x inputs
	@.ci/fuzz.sh $(T)

.PHONY: model
model: ## search the protocol's model (spec/), and each broken variant of it, with TLC: make model [SCOPE=nightly]
	@spec/check.sh $(SCOPE)

.PHONY: bench
bench: ## benchmarks, five repeats, summarised
	$(GO) test -run '^$$' -bench . -benchmem -count 5 ./internal/... | tee bin/bench.txt | tail -n 1
	$(call tool,benchstat) bin/bench.txt

.PHONY: bench-matching
bench-matching: ## ours beside Valhalla, OSRM and GraphHopper: make bench-matching [SETS=traffic,kubicka,delaware,hof,push]
	$(GO) build -buildvcs=true -o bin/bench-matching ./bench/matching
	bin/bench-matching $(if $(SETS),-sets $(SETS))

.PHONY: bench-import
bench-import: ## time and memory of graph build: Delaware, the maps of MILEPOST_DATA, 20 Delawares
	$(GO) build -buildvcs=true -o bin/bench-import ./bench/imports
	bin/bench-import

.PHONY: cover
cover: ## coverage of the unit tests: bin/cover.html
	@mkdir -p bin
	$(GO) test -short -coverpkg=./internal/... -coverprofile=bin/cover.out ./internal/...
	$(GO) tool cover -html=bin/cover.out -o bin/cover.html
	$(GO) tool cover -func=bin/cover.out | tail -n 1

.PHONY: fmt
fmt: ## format (gofumpt, import groups)
	$(call tool,golangci-lint) fmt

.PHONY: lint
lint: ## every linter, on both builds
	$(call tool,golangci-lint) config verify
	$(call tool,golangci-lint) run
	$(call tool,golangci-lint) run --build-tags nodev,invariants
	$(call tool,golangci-lint) run --build-tags nodev,failpoint,takeover,soak ./cmd/orchestrator ./test/...

.PHONY: vet
vet: ## go vet on every build
	$(GO) vet -tags integration ./...
	$(GO) vet -tags nodev,invariants ./...
	$(GO) vet -tags nodev,failpoint,takeover,soak ./cmd/orchestrator ./test/...
	$(GO) vet -tags tune ./internal/mapmatch

.PHONY: vuln
vuln: ## known vulnerabilities in what we call
	@.ci/vuln.sh

.PHONY: generate
generate: ## protobuf code, the package table of ARCHITECTURE.md, docs/config.md
	$(call tool,buf) generate
	$(GO) test . -run TestArchitectureQuotesTheTable -update
	$(GO) test ./cmd/orchestrator -run TestConfigPage -rewrite

.PHONY: verify
verify: ## generated files, go.mod and documents are up to date
	@.ci/verify.sh

.PHONY: gallery
gallery: ## draw the failure gallery (docs/gallery.md) anew from what the matcher does
	$(GO) test ./internal/mapmatch -run "TestM|TestGallery" -short -count=1 -rewrite

.PHONY: requirements
requirements: ## which tests prove which requirement: make requirements [GROUPS=A,I,F]
	@$(GO) run ./tools/requirements -groups "$(or $(GROUPS),$(COMPLETE))"

.PHONY: up
up: ## Kafka, Postgres and one worker in containers
	docker compose up --build --detach --wait

.PHONY: observe
observe: ## the same with Prometheus and Grafana: http://localhost:3000
	docker compose --profile observability up --build --detach --wait

.PHONY: down
down: ## stop them and forget their data
	docker compose --profile observability down --volumes

.PHONY: compose
compose: ## build docker compose into the cache, for .ci/compose.sh where Docker has none (minutes)
	@.ci/compose.sh build

.PHONY: migrate
migrate: ## run the stock goose on DSN: make migrate DSN=postgres://… CMD=up
	$(call tool,goose) -dir migrations postgres "$(DSN)" $(or $(CMD),up)

.PHONY: ci
ci: ## what CI runs, stage by stage with times
	@.ci/ci.sh

.PHONY: nightly
nightly: ## the long ones: simulation, fuzzing, race detector over and over
	$(MAKE) sim SEEDS=20000
	$(MAKE) mutations
	$(MAKE) chaos SECONDS=115 RUNS=18 MODE=-2
	$(MAKE) chaos SECONDS=115 RUNS=6 MODE=-2 BROKERS=3
	$(MAKE) fuzz T=2m
	$(MAKE) model SCOPE=nightly
	$(MAKE) compose
	$(GO) test -race -count=3 -tags invariants ./internal/...
	$(GO) run ./tools/withkafka $(GO) test -timeout 60m -run TestManyTransactions ./internal/publish -transactions 80000
	$(MAKE) failpoints ARGS=-other-protocol
	$(MAKE) soak MINUTES=30
	$(GO) test -timeout 60m -run TestHistoriesAreLinearizable ./internal/pgstore -linear-rounds 3000
