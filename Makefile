# What a change must pass: make check. Everything that every change must not break: make test. What takes long: make chaos.
GO ?= go
FUZZTIME ?= 10s
TESTTIME ?= 20m

.PHONY: check lint test test-histories test-bench test-chart race simulate interop chaos bench side fuzz up down reproducible release test-release build image kubernetes kubernetes-down

build:
	$(GO) build -o bin/agora ./cmd/agora

# The image of production; the version is built into it.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
IMAGE ?= agora:$(or $(VERSION),dev)
image:
	docker build -f deploy/Dockerfile --build-arg VERSION=$(VERSION) -t $(IMAGE) .

# All that a release consists of, in bin/release: archives of the program for six platforms, SBOMs, the image for two, the chart,
# checksums. docs/releasing.md says how it is published. make release VERSION=v1.2.3; TARGETS=linux/amd64 builds for one platform alone.
TARGETS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64
release:
	rm -rf bin/release
	cd release && $(GO) run . -version "$(VERSION)" -targets $(TARGETS) -out ../bin/release

# All there is, in one pass: what stands for a tag where it is not set is a constant or two, which the tests compile. The module of the
# chart's tests is vetted alone: staticcheck would read all of Kubernetes for it, which takes minutes.
all = -tags sabotage,chaos,interop ./...
lint:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt these:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet $(all)
	$(GO) tool staticcheck $(all)
	cd helm/check && $(GO) vet ./...
	staticcheck=$$($(GO) tool -n staticcheck) && for m in bench release; do (cd $$m && $(GO) vet ./... && $$staticcheck ./...) || exit 1; done

# Tests wait more than they compute, and none of them judges how long something took: more of them than there are processors
# run side by side, of three packages and of one: with more, two processors are busy all the time. They are linked without what a debugger needs.
tests = $(GO) test -vet=off -ldflags=-w -p 3 -parallel 4 -timeout $(TESTTIME)

# Histories of a whole cluster under fake time, in a Go runtime where one seed decides all that is left to chance. How many, howMany
# in internal/simcluster says.
histories = GOEXPERIMENT=norandomizedheapbase64 $(GO) test -tags oneseed -overlay "$$($(GO) run ./internal/oneseed bin/oneseed)" -vet=off -ldflags=-w -timeout 0 ./internal/simcluster -run '^TestHistories$$'

# Plays new histories for so long; make simulate SEED=… plays one again, and tells it.
FOR ?= 60s
simulate:
	AGORA_SIMULATE_FOR=$(FOR) AGORA_SIMULATE_SEED=$(SEED) $(histories) -count=1 -v

# The short tests, but for those whose edges are processes.
check: lint
	scripts/install.sh
	$(tests) -race -short $$($(GO) list ./... | grep -v /internal/reliability)
	$(histories) -short
	cd helm/check && $(GO) test -vet=off -timeout 5m ./...
	cd release && $(GO) test -vet=off -timeout 5m ./...

# Everything but what make chaos has. What takes longest comes first.
test:
	scripts/install.sh
	$(tests) ./internal/reliability ./edge/... ./cmd/... ./...
	$(MAKE) --no-print-directory -j3 -Otarget test-histories test-bench test-chart test-release

test-histories:
	$(histories)

test-bench:
	cd bench && $(GO) test -vet=off -ldflags=-w -timeout 5m ./...

test-chart:
	cd helm/check && $(GO) test -vet=off -ldflags=-w -timeout 5m ./...

test-release:
	cd release && $(GO) test -vet=off -ldflags=-w -timeout 5m ./...

# The same tests under the race detector, which takes the processors for three times as long: make check has the short ones of them. A whole
# cluster of processes and all its agents are enough for two processors: they go first, by themselves.
race:
	scripts/install.sh
	$(tests) -race ./internal/reliability
	$(tests) -race ./edge/... ./cmd/... ./...
	cd bench && $(GO) test -race -vet=off -timeout 5m ./...

# Clients of other languages against real edges: Node, Python, js-libp2p, hosts and servers of MCP, curl, nghttp, grpcurl, ghz. Installs what of them is missing, libraries into bin/interop.
interop:
	GO=$(GO) scripts/interop.sh
	$(GO) test -tags interop -count=1 -vet=off -parallel 4 -timeout $(TESTTIME) ./interop/...

# What takes long, and what judges how long something took, one after the other: all under the race detector, the failure matrix
# three times over, accounts of what is said while all kinds of things are killed at random, a disk that is full, every protection shown to be needed by a test and in each cell, more than edges can take,
# many random histories.
chaos: race
	$(GO) test -tags chaos -count=1 -timeout 20m ./internal/guard
	$(GO) test -tags chaos -count=1 -timeout 60m -v ./internal/reliability
	$(GO) test -tags chaos -count=1 -timeout 40m -v ./internal/overload
	$(MAKE) simulate FOR=20m
	$(GO) test -tags chaos -count=1 -timeout 60m -p 1 . ./broker ./client ./cmd/... ./edge/... ./spaces

# Each part by itself, and then the whole next to core NATS in the same run: its ratios may not be worse than the stored
# ones by more than a third. What changes them for good updates them: make bench UPDATE=-update.
bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...
	scripts/install.sh
	cd bench && $(GO) run . -runs 3 -only core,agora-r1,agora-r3 -load saturated,paced,fanout -baseline baseline.json $(UPDATE)

# Agora next to NATS and Socket.IO: a module of its own, which starts real servers of all of them. Needs node and npm.
# Tables are printed, and left in bin/side.md; every figure of every run in bin/side.json.
RUNS ?= 5
side:
	scripts/install.sh
	mkdir -p bin
	cd bench && $(GO) run . -runs $(RUNS) -markdown ../bin/side.md -json ../bin/side.json

# Every fuzz target there is, one after the other.
fuzz:
	GO=$(GO) scripts/fuzz.sh $(FUZZTIME)

# A cluster in containers: three edges behind a balancer, three NATS servers and Redis, reachable from this machine only, at
# ws://127.0.0.1:8080. make down ends it; what it holds stays in volumes until `docker compose down -v`.
COMPOSE ?= docker compose
up:
	AGORA_VERSION=$(VERSION) $(COMPOSE) up --build --wait

down:
	$(COMPOSE) --profile observe down

# A real Kubernetes of three nodes on this machine, as root: the chart in a restricted namespace, and drills under numbered load (internal/drills).
# KEEP=1 leaves it up, make kubernetes-down ends it. Builds Kubernetes the first time: twenty minutes.
kubernetes:
	scripts/kubernetes/run.sh

kubernetes-down:
	scripts/kubernetes/down.sh

# Two builds of the image's program are the same, byte by byte.
reproducible:
	scripts/reproducible.sh
