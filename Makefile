# Dragoman. `make run` and `make test` are all that is needed; they need only Go and no root.
# The rest is for CI, for measuring and for making a release. `make help` lists it.

GO       ?= go
FUZZTIME ?= 10s
CACHE    ?= $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/dragoman-dev
RACE     ?= ./...
SOAK     ?= 30m

MODULE   := github.com/dragoman-proxy/dragoman
REVISION := $(shell git rev-parse HEAD 2>/dev/null)
STATUS   := $(shell git diff --quiet HEAD 2>/dev/null && echo Clean || echo Modified)
RELEASE  := $(shell git describe --tags --match 'v*' 2>/dev/null | sed 's/^v//')
STAMP    := -X $(MODULE)/internal/version.revision=$(REVISION) -X $(MODULE)/internal/version.status=$(STATUS) \
            $(if $(RELEASE),-X $(MODULE)/internal/version.release=$(RELEASE))

.DEFAULT_GOAL := help
.PHONY: help run build test docs race test-std test-sim soak storm fuzz lint lint-own cross golangci test-peers conform dist test-dist fmt clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## a proxy with a demonstration configuration on the loopback; Ctrl-C or a SIGTERM to make ends it
	@exec bin/dragoman demo

build: ## the static binary bin/dragoman, and bin/envoy, the same binary by Envoy's name
	@echo 'building bin/dragoman: half a minute to a minute the first time, seconds later'
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w $(STAMP)' -o bin/dragoman ./cmd/dragoman
	ln -sf dragoman bin/envoy

test: ## everything that needs only Go: vet, the tree's own rules, all tests
	$(GO) vet ./...
	$(GO) test -shuffle=on ./test/house ./proxy/internal
	$(GO) test -shuffle=on $$($(GO) list ./... | grep -vE '/test/house$$|/proxy/internal$$')

docs: ## write the pages that are made from code: docs/compat.md, docs/fields, docs/cli.md
	$(GO) test ./test/docs ./cmd/dragoman -run 'Test(Compat|Fields|CLIPage)' -update

race: ## the same under the race detector (needs a C compiler); RACE=./pkg/... for a part
	CGO_ENABLED=1 $(GO) test -race -shuffle=on $(RACE)

test-std: ## the command on the portable driver, a goroutine per connection (tests of the engine use both anyway)
	DRAGOMAN_IO=std $(GO) test -shuffle=on ./cmd/... $(patsubst %,./%/...,$(wildcard test/scenario))

test-sim: ## the deterministic simulation with new seeds; SEED=n repeats one
	$(GO) test -count=1 -v ./test/sim/...

soak: ## half of the load that fits, with all that goes wrong, for SOAK (30m): memory must not grow, nothing may be left
	DRAGOMAN_SOAK=$(SOAK) $(GO) test -count=1 -timeout=24h -v -run='^TestSoak$$' ./test/bench

storm: ## what changes of 4,521 clusters cost under load, and what long streams hold: minutes, and both cores
	$(GO) test -count=1 -timeout=1h -v -run='^(TestChurn|TestStreamsPinLittle)$$' ./test/bench -full

fuzz: ## every fuzz target for FUZZTIME (10s)
	@GO='$(GO)' tools/fuzz.sh $(FUZZTIME)

lint: lint-own ## gofmt, the house's analyzers, and golangci-lint where `make golangci` has built it
	@if [ -x $(CACHE)/golangci-lint ]; then set -x; $(CACHE)/golangci-lint run; \
	else echo 'golangci-lint is not built (make golangci does it once, in some minutes): left out'; fi

lint-own: bin/vet ## the part of lint that CI asks for: gofmt, the house's analyzers, fields that nothing reads
	@out=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); if [ -n "$$out" ]; then echo "gofmt these: $$out"; exit 1; fi
	$(GO) vet -vettool=$(CURDIR)/bin/vet ./...
	$(GO) run -C tools ./unread >bin/unread.txt && UNREAD=$(CURDIR)/bin/unread.txt $(GO) test ./test/docs -run TestEveryFieldIsDecided

bin/vet: $(wildcard tools/go.* tools/*/*.go tools/internal/*/*.go)
	$(GO) build -C tools -o ../bin/vet ./vet

golangci: ## build the pinned golangci-lint into the cache
	$(GO) build -C tools/golangci -o $(CACHE)/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

test-peers: build ## install real peers (Debian and Python packages, as root) and run the tests against them
	@CACHE='$(CACHE)' GO='$(GO)' tools/peers.sh

conform: build ## the conformance cases that must pass; CONFORM_ARGS='--all' for the rest, '--grow' to extend the list
	test/conform/run --binary bin/envoy $(CONFORM_ARGS)

cross: ## that the command compiles for the other systems it is made for
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(GO) build -trimpath -o /dev/null ./cmd/dragoman
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 $(GO) vet ./cmd/dragoman

dist: ## binaries, deb, rpm, OCI image and checksums in dist/, the same bytes each time; DIST_ONLY=linux/amd64 for a part
	$(GO) run -C tools/dist . -root ../.. -out $(CURDIR)/dist -version '$(or $(RELEASE),0.0.0-dev)' \
		-time "$$(git log -1 --format=%ct)" -ldflags '-s -w $(STAMP)' -only '$(DIST_ONLY)'

test-dist: ## make dist for this machine, twice the same, and install and run what it made (Debian, as root)
	@GO='$(GO)' tools/dist/check.sh

fmt: ## format what is not
	gofmt -w $$(git ls-files -co --exclude-standard '*.go')

clean: ## remove what was built
	rm -rf bin dist
