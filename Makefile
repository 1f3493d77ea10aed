# gobag: the three tiers of tests and the release. Everything that tests need is installed by `make deps`.
GO        ?= go
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS   := -s -w -X main.version=$(VERSION)
SOAK      ?= 5m
FUZZ      ?= 30s
BIN       := bin
LINTER    := v2.15.0
PLATFORMS := linux/amd64 linux/arm64 darwin/arm64 windows/amd64
export GOFLAGS := -buildvcs=false

.PHONY: all build test ci examples quick vet lint deps peers cross accept-main accept-ros2 accept-storage accept-transport accept-verbs accept-ros1 accept-columnar accept-perf docs/benchmarks.md fuzz soak release clean

all: build

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/gobag ./cmd/gobag

# What CI runs: everything a commit must pass, real peers included. Under 20 minutes on two cores.
test: deps peers vet cross
	$(GO) test -race -timeout 15m $$($(GO) list ./... | grep -v /interop)
	$(GO) test -timeout 5m -run 'TestEvery' ./cmd/gobag
	$(MAKE) --no-print-directory examples
	GOBAG_INTEROP=required $(GO) test -count=1 -timeout 10m ./interop/...

# Modules of their own, which ./... does not reach.
examples:
	cd examples/plainlog && $(GO) vet ./... && $(GO) test -race -timeout 5m ./...
	cd interop/arrowgo && $(GO) vet ./... && $(GO) test -timeout 5m ./...

# The same without peers, installs and the race detector: for the inner loop.
quick: vet
	$(GO) test -short $$($(GO) list ./... | grep -v /interop)

vet:
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo 'gofmt: the files above want formatting'; exit 1; }
	$(GO) vet ./...

# The linter is looked for in PATH and where `go install` puts it.
lint: vet
	@PATH="$$PATH:$$($(GO) env GOPATH)/bin"; command -v golangci-lint > /dev/null || { \
	  echo 'golangci-lint is not installed: $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINTER)'; exit 1; }; \
	for os in linux darwin windows; do echo "lint $$os"; GOOS=$$os golangci-lint run || exit 1; done

deps:
	$(MAKE) --no-print-directory -C interop install

peers: deps
	$(MAKE) --no-print-directory -C interop peers

# Every platform of the release must compile.
cross:
	@set -e; for p in $(PLATFORMS); do echo "build $$p"; \
	  CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -o /dev/null ./cmd/gobag; done

# Acceptance: one target per large piece of work, each printing its figures beside their bars.
accept-main: deps peers build
	$(GO) run ./interop/accept main

accept-ros2: deps peers build
	$(GO) run ./interop/accept ros2

accept-storage: deps peers build
	$(GO) run ./interop/accept storage

accept-transport: deps peers build
	$(GO) run ./interop/accept transport

accept-ros1: deps peers build
	$(GO) run ./interop/accept ros1

accept-columnar: deps peers build
	$(GO) run ./interop/accept columnar

accept-verbs: deps peers build
	$(GO) run ./interop/accept verbs

accept-perf: deps peers build
	$(GO) run ./interop/accept perf

# The page of all results below docs/results.
docs/benchmarks.md: build
	$(BIN)/gobag perf docs docs/results -o $@

# Every fuzz target for a while, from the corpus in testdata/fuzz; what it finds is put there by go test.
fuzz:
	@set -e; for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -run '^$$' -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZ) $$p; done; done

# Everything of test, and two minutes of the soak.
ci: test
	$(MAKE) --no-print-directory soak SOAK=2m

soak: deps peers build
	$(MAKE) --no-print-directory -C interop spark
	GOBAG_SOAK=$(SOAK) GOBAG_INTEROP=required $(GO) test -count=1 -timeout 2h -run Soak -v ./interop

release:
	@set -e; mkdir -p dist; for p in $(PLATFORMS); do \
	  os=$${p%/*}; arch=$${p#*/}; out=dist/gobag-$(VERSION)-$$os-$$arch; [ $$os = windows ] && out=$$out.exe; \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $$out ./cmd/gobag; \
	  size=$$(wc -c < $$out); echo "$$out $$size bytes"; \
	  [ $$size -lt 25000000 ] || { echo "$$out is not below 25 MB"; exit 1; }; done

clean:
	rm -rf $(BIN) dist
	$(MAKE) --no-print-directory -C interop clean
