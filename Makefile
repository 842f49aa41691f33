# Everything here needs only Go; the tools are fetched and cached by go tool. The
# tests also need what tools/need-*.sh look for, and install where they may.
.DEFAULT_GOAL := help
.PHONY: help build demo demo-cluster chaos sim mutants hot test check lint fmt fuzz bench

TOOL := go tool -modfile=tools/go.mod
# For how long make fuzz runs each target, and what make demo is told.
FUZZTIME ?= 20s
ARGS ?=

help: ## say what there is
	@echo "ringi: a durable workflow engine in one binary. Start with: make demo"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## bin/ringi, one static binary
	CGO_ENABLED=0 go build -trimpath -o bin/ringi ./cmd/ringi

demo: build ## 100 orders through server, worker and services that get killed (ARGS="--seed 7")
	bin/ringi demo $(ARGS)

demo-cluster: build ## the same on three nodes and a PostgreSQL of its own, all of which get killed
	bin/ringi demo --nodes 3 $(ARGS)

chaos: build ## an outbox and its consumers under kill -9, stops and crashes, with a ledger (ARGS="--for 1h --seed 7")
	bin/ringi bench chaos-outbox $(ARGS)

sim: build ## worlds in which everything breaks, one after the other, until stopped (ARGS="--seed 7")
	bin/ringi sim --seeds -1 $(ARGS)

mutants: ## break every safety rule by a patch of sim/mutants, and find each by the simulator (minutes)
	go test -timeout 60m -v -run Mutants ./sim -mutants

hot: ## what each statement reads beside a million finished runs and 100,000 that wait, on PostgreSQL (minutes)
	go test -timeout 30m -v -run TheHotPathCosts ./store/postgres -finished 1000000 -waiting 100000

test: ## every test under the race detector; ends with N passed, N failed, 0 skipped
	@tools/need-cc.sh
	@tools/need-servers.sh
	@tools/need-sdk.sh
	@go build -C tools -buildvcs=false -o ../bin/testsum ./testsum
	@CGO_ENABLED=1 bin/testsum -dirs .,tools -limit 30m -- -race -timeout 20m -p 2 ./...

check: ## before a commit: format, vet, laws, and the tests without the race detector
	@unformatted=$$($(TOOL) gofumpt -l .) || exit 1; \
	test -z "$$unformatted" || { echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; }
	@go vet ./...
	@tools/need-servers.sh
	@tools/need-sdk.sh
	@go build -C tools -buildvcs=false -o ../bin/testsum ./testsum
	@bin/testsum -dirs .,tools -limit 10m -- ./...

lint: ## golangci-lint with the list of .golangci.yml (the first time builds it: minutes)
	$(TOOL) golangci-lint run ./...
	cd tools && go tool golangci-lint run --config ../.golangci.yml ./...

fmt: ## gofumpt, and imports in three groups
	$(TOOL) golangci-lint fmt

fuzz: ## every fuzz target for FUZZTIME each (20s)
	@tools/fuzz.sh $(FUZZTIME)

bench: ## the benchmarks; compare two outputs with: go tool -modfile=tools/go.mod benchstat OLD NEW
	go test -run '^$$' -bench . ./bench/
