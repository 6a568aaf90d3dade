# What a change must pass: make check. Everything, slow rounds included: make test.
GO ?= go
FUZZTIME ?= 10s
TESTTIME ?= 20m

.PHONY: check lint test bench fuzz up build

build:
	$(GO) build -o bin/agora ./cmd/agora

lint:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt these:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

check: lint
	scripts/install-redis.sh
	$(GO) test -short -race -timeout $(TESTTIME) ./...

test:
	scripts/install-redis.sh
	$(GO) test -race -timeout $(TESTTIME) ./...

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# Every fuzz target there is, one after the other.
fuzz:
	GO=$(GO) scripts/fuzz.sh $(FUZZTIME)

# The production set: NATS, Redis, edges and a load balancer.
up:
	docker compose up --build
