# `make help` lists what can be made. Nothing but Go, make and git is needed; test-race needs a C compiler as well.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.NOTPARALLEL:
.DEFAULT_GOAL := help

# The same flags for every build, so that what one compiles is in the cache for the next.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath

MODULE := github.com/fleetwright/fleetwright
PROGRAMS := fleetwright-hub fleetwright-agent kubectl-amc
# How many members `make up` starts, and further ones with an API server and an agent alone.
MEMBERS ?= 3
BARE ?= 0

# Flags of every test. Tests run in another order each time, so that none comes to need the one before it.
TEST_FLAGS ?= -shuffle=on

# packages-with lists the packages whose tests' imports match an awk pattern. Those that use test/framework start API
# servers, and so need `make envtest`.
packages-with = $$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.TestImports}} {{.XTestImports}}{{end}}' ./... | awk '$(1) {print $$1}')
unit-packages = $(call packages-with,NF && !/\/test\/framework/)
api-packages = $(call packages-with,/\/test\/framework/ && $$1 ~ "^$(MODULE)/(api|config)/")
integration-packages = $(call packages-with,/\/test\/framework/ && $$1 !~ "^$(MODULE)/(api|config|test/e2e)(/|$$)")

##@ To try it

.PHONY: help
help: ## List what can be made
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: up
up: build ## Start a hub and MEMBERS=3 members with the product on them
	go build -o bin/up ./hack/up
	bin/up -members $(MEMBERS) -bare $(BARE)

.PHONY: down
down: sandbox ## Stop what `make up` started, and remove its state
	go build -o bin/up ./hack/up
	bin/up -down

##@ To build

.PHONY: build
build: sandbox ## Build the programs into bin/
	go build -o bin/ $(PROGRAMS:%=./cmd/%)

.PHONY: sandbox
sandbox: ## Build the sandbox's command, bin/sandbox
	@mkdir -p bin
	go -C sandbox build -buildvcs=false -o ../bin/sandbox .

.PHONY: envtest
envtest: sandbox ## Build Kubernetes into bin/k8s, for tests with real API servers
	bin/sandbox build --only kubernetes

.PHONY: clusters
clusters: sandbox ## Build all that a sandbox runs
	bin/sandbox build

.PHONY: generate
generate: bin/tools/controller-gen ## Generate deep copies and CustomResourceDefinitions from api/
	bin/tools/controller-gen object paths=./api/...
	rm -rf bin/generated && mkdir -p bin/generated
	bin/tools/controller-gen crd paths=./api/... output:crd:dir=bin/generated
	go -C hack/tools run ./crdgen -from $(CURDIR)/bin/generated -to $(CURDIR)/config/crd

.PHONY: clean
clean: down ## Remove all that was built; compiling Kubernetes anew takes some minutes
	rm -rf bin .cache .sandbox .sandbox-*

##@ To test

.PHONY: test
test: lint verify-modules verify-generated test-unit test-api test-integration test-sandbox test-e2e ## Run every test

.PHONY: lint
lint: bin/tools/golangci-lint ## Look for what tests do not find; .golangci.yml and hack/tools/repolint say what and why
	bin/tools/golangci-lint run
	cd sandbox && ../bin/tools/golangci-lint run --config ../.golangci.yml
	cd hack/tools && ../../bin/tools/golangci-lint run --config ../../.golangci.yml
	go -C hack/tools run ./repolint -root $(CURDIR)

# Checksums before and after, and not git's word, so that it can be asked before a commit too.
generated-sums = find config/crd api -name '*.yaml' -o -name 'zz_generated.*' | sort | xargs sha256sum

.PHONY: verify-generated
verify-generated: ## Fail where generated files are not what `make generate` makes
	@before=$$($(generated-sums)); $(MAKE) generate; after=$$($(generated-sums)); \
	if [ "$$before" != "$$after" ]; then \
	  echo "Generated files were out of date; they are made anew now, commit them:" >&2; \
	  diff <(echo "$$before") <(echo "$$after") >&2 || true; exit 1; \
	fi

.PHONY: verify-modules
verify-modules: ## Fail where a go.mod or go.sum is not tidy
	for module in . sandbox hack/tools hack/golangci-lint; do go -C $$module mod tidy -diff; done

.PHONY: test-unit
test-unit: ## Run the tests that need no servers
	go test $(TEST_FLAGS) $(unit-packages)
	go -C hack/tools test $(TEST_FLAGS) ./...

.PHONY: test-api
test-api: envtest ## Ask real API servers what they make of the API, the policies and the rights
	go test $(TEST_FLAGS) -timeout 20m $(api-packages)

.PHONY: test-integration
test-integration: envtest ## Run the controllers against real API servers
	go test $(TEST_FLAGS) -timeout 20m $(integration-packages)

.PHONY: test-sandbox
test-sandbox: clusters ## Test the sandbox itself
	go -C sandbox test $(TEST_FLAGS) -timeout 20m ./...

.PHONY: test-e2e
test-e2e: build clusters ## Use the product as its users do, on a sandbox of its own
	go test $(TEST_FLAGS) -count=1 -timeout 30m ./test/e2e/...

.PHONY: test-race
test-race: export CGO_ENABLED := 1
test-race: ## Run the unit and integration tests under the race detector
	CGO_ENABLED=0 $(MAKE) envtest
	go test -race $(TEST_FLAGS) -timeout 40m $(unit-packages) $(integration-packages)

.PHONY: bench
bench: build clusters ## Print figures of speed, writes and memory; no figure is a failure
	go run ./test/perf

# --- Tools ---

# Each is built again when its version changes.
bin/tools/controller-gen: hack/tools/go.mod hack/tools/go.sum
	go -C hack/tools build -o $(CURDIR)/$@ sigs.k8s.io/controller-tools/cmd/controller-gen

bin/tools/golangci-lint: hack/golangci-lint/go.mod hack/golangci-lint/go.sum
	go -C hack/golangci-lint build -o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
