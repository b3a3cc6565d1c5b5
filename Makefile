# `make` lists the targets. Needed: Linux, Go, git and this file's make, and root for the cluster
# and the tests. What else is missing, the targets install with apt-get where there is one, or name.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# The folder of the local cluster: programs, certificates, logs, images.
CLUSTER_DIR ?= $(CURDIR)/.cluster
# Nodes of the local cluster: those it has, or one.
NODES ?= $(or $(filter-out 0,$(words $(wildcard $(CLUSTER_DIR)/nodes/*))),1)
# The nodes' container runtime: containerd, or debian for Debian's own.
RUNTIME ?= containerd
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# The tag of the images that `make images` makes and `make install` runs.
IMAGE_TAG ?= dev
# What `make test-e2e` hands to go test, for instance E2E_ARGS='-run TestThresholds -v'.
E2E_ARGS ?=
# How many end-to-end tests run at once. The cluster shares the machine with them.
E2E_PARALLEL ?= 3

CLUSTER := go -C hack/cluster run .
TOOL := go tool -modfile=hack/tools/go.mod
KUBECTL := $(CLUSTER_DIR)/bin/kubectl --kubeconfig $(CLUSTER_DIR)/kubeconfig
IMAGES := $(CLUSTER_DIR)/images

PROGRAMS := $(patsubst cmd/%/main.go,%,$(wildcard cmd/*/main.go))
MODULES := $(patsubst ./%,%,$(patsubst %/go.mod,%,$(shell find . \( -path ./.cluster -o -path ./.git \) -prune -o -name go.mod -print | sort)))
# Modules with code of their own; the others only pin versions.
CODE_MODULES := $(foreach m,$(MODULES),$(if $(shell find $(m) -path ./.cluster -prune -o -name '*.go' -print -quit),$(m)))

GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)'

##@ Main

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## Show Seamark at work in half a minute: game servers as local processes, without cluster or root.
	@$(GO_BUILD) -o bin/ ./cmd/seamark
	bin/seamark local -f examples/game-server --until 'pod/game-server-* event=KruiseProbeFailed' --timeout 1m

.PHONY: demo
demo: install ## Start a cluster, install Seamark, show a game server's pods being marked and scaled down.
	@go run ./hack/demo --kubeconfig $(CLUSTER_DIR)/kubeconfig --kubectl $(CLUSTER_DIR)/bin/kubectl --manifests examples/game-server

.PHONY: demo-down
demo-down: cluster-down ## Remove all that the demo started.

.PHONY: build
build: ## Build the programs into bin/, static and stamped with the version.
	@$(GO_BUILD) -o bin/ $(addprefix ./cmd/,$(PROGRAMS))
	@$(GO_BUILD) -o bin/example-server ./examples/server
	@echo "built $(addprefix bin/,$(PROGRAMS) example-server), version $(VERSION)"

.PHONY: test
test: test-unit test-local test-reproducible test-integration test-e2e ## Run all tests. Leaves the machine as it was.

##@ Cluster

.PHONY: cluster-up
cluster-up: ## Start a real Kubernetes on this machine, or mend the one that runs. NODES=N for more nodes.
	@$(CLUSTER) up --nodes $(NODES) --runtime $(RUNTIME) --dir "$(CLUSTER_DIR)"

.PHONY: cluster-down
cluster-down: ## Stop the cluster and remove all that it made, but for its programs.
	@$(CLUSTER) down --dir "$(CLUSTER_DIR)"

.PHONY: images
images: build sbom ## Make the images' archives in .cluster/images, without Docker.
	@mkdir -p $(IMAGES)
	@$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/seamark-manager:$(IMAGE_TAG) --out $(IMAGES)/seamark-manager.tar \
		--user 65532 --entrypoint /seamark-manager --file $(CURDIR)/bin/seamark-manager=/seamark-manager
	@$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/seamark-agent:$(IMAGE_TAG) --out $(IMAGES)/seamark-agent.tar \
		--user 0 --entrypoint /seamark-agent --file $(CURDIR)/bin/seamark-agent=/seamark-agent

.PHONY: sbom
sbom: build ## Write what each program is made of beside the archives, as CycloneDX JSON.
	@mkdir -p $(IMAGES)
	@$(foreach p,$(PROGRAMS),go -C hack/sbom run . --version $(VERSION) --out $(IMAGES)/$(p).cdx.json $(CURDIR)/bin/$(p);)

# What the chart is told of the local cluster. All its nodes share one file system, so each agent finds its own
# runtime by its node's name. The digests make a rebuilt program roll its own pods, and no others.
LOCAL_VALUES = --set-string image.tag=$(IMAGE_TAG) \
	--set-string 'manager.podAnnotations.seamark\.dev/image-digest'=$$(sha256sum <$(IMAGES)/seamark-manager.tar | cut -c-64) \
	--set-string 'agent.podAnnotations.seamark\.dev/image-digest'=$$(sha256sum <$(IMAGES)/seamark-agent.tar | cut -c-64) \
	--set-string agent.runtimeFolder=$(CLUSTER_DIR)/nodes \
	--set-string 'agent.criEndpoint=unix:///run/$$(NODE_NAME)/containerd.sock'

# One argument a line, for those who call helm themselves.
.PHONY: local-values
local-values:
	@printf '%s\n' $(LOCAL_VALUES)

.PHONY: install
install: cluster-up images ## Install Seamark's chart in the cluster, or update it to what is built now.
	@$(CLUSTER) load --dir "$(CLUSTER_DIR)" $(IMAGES)/seamark-manager.tar $(IMAGES)/seamark-agent.tar
	@$(TOOL) helm upgrade --install seamark charts/seamark --kubeconfig $(CLUSTER_DIR)/kubeconfig \
		--namespace seamark-system --create-namespace $(LOCAL_VALUES) \
		--wait --timeout 3m || { $(KUBECTL) -n seamark-system get pods -o wide; $(KUBECTL) -n seamark-system get events --sort-by=.lastTimestamp | tail -20; exit 1; }

##@ Tests

.PHONY: test-unit
test-unit: compiler ## Run the unit tests of every module, with the race detector but for the kubelet's own code.
	go test -race ./api/... ./internal/... ./cmd/... ./hack/...
	@$(foreach m,$(filter-out . test/parity test/monitoring,$(CODE_MODULES)),echo 'go -C $(m) test -race ./...'; go -C $(m) test -race ./...;)
	go -C test/parity test ./...
	@$(MAKE) --no-print-directory test-monitoring
	@$(MAKE) --no-print-directory fuzz-short

# promtool builds in minutes the first time, and is kept in Go's cache after.
.PHONY: test-monitoring
test-monitoring: ## Check alerts, dashboard and runbooks against the metrics, with promtool. Part of test-unit.
	go -C test/monitoring test -count=1 ./...

.PHONY: test-local
test-local: jq ## Run the examples as local processes and check what comes of them. No cluster, no root.
	go test -count=1 ./examples/... ./test/local/... ./test/docs/...

.PHONY: test-reproducible
test-reproducible: ## Build the images twice, in different folders, and compare the digests.
	go test -count=1 -v ./test/images/...

.PHONY: test-integration
test-integration: ## Run the tests that need an API server and etcd, both built from source.
	@$(CLUSTER) build --only etcd,kube-apiserver --dir "$(CLUSTER_DIR)"
	SEAMARK_CLUSTER_BIN="$(CLUSTER_DIR)/bin" go test -p 1 -timeout 20m ./test/integration/...

.PHONY: test-scale
test-scale: ## Count the manager's writes with 3,000 pods on 100 nodes, on a real API server. By hand: it takes minutes.
	@$(CLUSTER) build --only etcd,kube-apiserver --dir "$(CLUSTER_DIR)"
	SEAMARK_SCALE=full SEAMARK_CLUSTER_BIN="$(CLUSTER_DIR)/bin" go test -count=1 -v -timeout 20m -run TestCountsOfWrites ./test/integration/manager

.PHONY: test-e2e
test-e2e: ## Run the end-to-end tests. A cluster started for them is stopped after; KEEP=1 leaves it up.
	@if $(KUBECTL) get --raw /readyz >/dev/null 2>&1; then keep=1; else keep=$(KEEP); fi; \
	trap '[[ -n $$keep ]] || $(MAKE) --no-print-directory cluster-down' EXIT; \
	$(MAKE) --no-print-directory install e2e-images example-images; \
	echo 'go test ./test/e2e/...'; \
	SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) go test -count=1 -p 1 -parallel $(E2E_PARALLEL) -timeout 40m ./test/e2e/... $(E2E_ARGS); \
	[[ -n "$(E2E_ARGS)" ]] || $(MAKE) --no-print-directory test-docs; \
	if [[ -z $$keep ]]; then $(MAKE) --no-print-directory test-e2e-nodes; fi

.PHONY: test-docs
test-docs: jq example-images ## Run the commands of the documents on the cluster that is up. Those that need none, test-local runs.
	SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) go test -count=1 -timeout 40m ./test/docs -run TestCommands

# Several nodes, and a runtime that streams no container events: the tests that may turn out otherwise there.
.PHONY: test-e2e-nodes
test-e2e-nodes: ## Turn the local cluster into two nodes with Debian's containerd and run what differs there.
	@$(MAKE) --no-print-directory NODES=2 RUNTIME=debian install e2e-images
	SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) go test -count=1 -parallel $(E2E_PARALLEL) -timeout 20m ./test/e2e \
		-run 'TestEveryNode|TestThresholds|TestMessages|TestContainerRestart|TestContainerThatNeverStarts|TestRecreatedPodWithTheSameName|TestHangingProbe'

.PHONY: e2e-images
e2e-images:
	@$(GO_BUILD) -o $(IMAGES)/bin/ ./test/e2e/target
	@$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/probe-target:dev --out $(IMAGES)/probe-target.tar \
		--user 65532 --entrypoint /target --file $(IMAGES)/bin/target=/target
	@$(CLUSTER) load --dir "$(CLUSTER_DIR)" $(IMAGES)/probe-target.tar

.PHONY: example-images
example-images: ## Make the image of the examples' server, and load it into the local cluster.
	@$(GO_BUILD) -o $(IMAGES)/bin/ ./examples/server
	@$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/example-server:dev --out $(IMAGES)/example-server.tar \
		--user 65532 --entrypoint /bin/example-server --file $(IMAGES)/bin/server=/bin/example-server
	@$(CLUSTER) load --dir "$(CLUSTER_DIR)" $(IMAGES)/example-server.tar

.PHONY: bench
bench: ## Run the benchmarks, each as a ratio to its floor, measured beside it. The last runs on a real API server.
	go test -run='^$$' -bench=. $(sort $(dir $(shell grep -rlE --include='*_test.go' '^func Benchmark' ./api ./internal)))
	@$(CLUSTER) build --only etcd,kube-apiserver --dir "$(CLUSTER_DIR)"
	SEAMARK_CLUSTER_BIN="$(CLUSTER_DIR)/bin" go test -run='^$$' -bench=. -benchtime=300x ./test/integration/manager

# Runs each fuzz target below the folders $(1) for the time $(2).
FUZZ = grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' $(1) | while IFS=: read -r file target; do \
	echo "fuzz $$(dirname $$file) $${target\#func }"; \
	go -C "$$(dirname $$file)" test -run='^$$' -fuzz="^$${target\#func }$$" -fuzztime=$(2) .; done

.PHONY: fuzz-short
fuzz-short: ## Run each fuzz target for 3 seconds, or FUZZTIME. Part of test-unit.
	@$(call FUZZ,./api ./internal,$(or $(FUZZTIME),3s))

.PHONY: fuzz
fuzz: ## Run each fuzz target for 5 minutes, or FUZZTIME, the one beside the kubelet too.
	@$(call FUZZ,./api ./internal ./test/parity,$(or $(FUZZTIME),5m))

# $(call INSTALL,program,packages,what needs it) installs the program where it is missing and there is apt-get.
INSTALL = command -v $(1) >/dev/null || { echo 'installing $(1), which $(3)'; \
	command -v apt-get >/dev/null || { echo 'no $(1) and no apt-get: install it' >&2; exit 1; }; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(2) >/dev/null; }

.PHONY: compiler
compiler:
	@$(call INSTALL,$(firstword $(shell go env CC)),gcc libc6-dev,the race detector needs)

.PHONY: jq
jq:
	@$(call INSTALL,jq,jq,the documents use)

##@ Code

.PHONY: generate
generate: ## Write deepcopy code, CRDs, docs/api.md, and the chart's copies of what config/ says.
	@$(TOOL) controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...
	@crds=$$(mktemp -d); trap 'rm -rf $$crds' EXIT; \
	$(TOOL) controller-gen crd paths=./api/... output:crd:dir=$$crds; \
	go run ./hack/crdmerge config/crd/embedded $$crds; \
	cp $$crds/*.yaml config/crd/bases/
	@go tool -modfile=hack/tools/apidocs/go.mod crd-ref-docs --log-level ERROR --config hack/apidocs/config.yaml --renderer markdown \
		--templates-dir hack/apidocs/templates --source-path api --output-path docs/api.md
	@rm -rf $(addprefix charts/seamark/files/,crd rbac policies serverless) && mkdir -p $(addprefix charts/seamark/files/,crd rbac policies serverless)
	@cp config/crd/bases/*.yaml charts/seamark/files/crd/
	@$(foreach f,rbac policies serverless,cp $(filter-out %/kustomization.yaml,$(wildcard config/$(f)/*.yaml)) charts/seamark/files/$(f)/;)
	@page=$$(go run ./hack/metricsdocs); echo "$$page" >docs/metrics.md

.PHONY: lint
lint: ## Lint every module.
	@failed=0; $(foreach m,$(CODE_MODULES),echo 'lint $(m)'; \
	(cd $(m) && go tool -modfile=$(CURDIR)/hack/tools/lint/go.mod golangci-lint run --allow-serial-runners --config $(CURDIR)/.golangci.yml ./...) || failed=1;) exit $$failed

# vale reads documents; its style is in hack/vale.
.PHONY: lint-prose
lint-prose: compiler ## Check the language of the documents.
	@echo 'lint prose'; go tool -modfile=hack/tools/vale/go.mod vale --output=line --glob='!docs/{api,metrics}.md' README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs examples

.PHONY: fmt
fmt: ## Format the code of every module.
	@$(foreach m,$(CODE_MODULES),(cd $(m) && go tool -modfile=$(CURDIR)/hack/tools/lint/go.mod golangci-lint fmt --config $(CURDIR)/.golangci.yml);)

.PHONY: verify
verify: verify-generate verify-modules verify-chart lint lint-prose vulncheck ## Check what is generated, the modules, the chart and the style.
	@$(foreach m,$(CODE_MODULES),echo 'vet $(m)'; go -C $(m) vet ./...;)

# Compared with the state before, so that it serves in a tree with work in progress too.
.PHONY: verify-generate
verify-generate:
	@echo 'generate'; state() { git diff HEAD; git status --porcelain; }; before=$$(mktemp); state >$$before; \
	trap 'rm -f $$before' EXIT; $(MAKE) --no-print-directory generate; \
	state | diff -u $$before - || { echo 'generated files are out of date: run make generate and commit' >&2; exit 1; }

# The scan takes a minute and 5 GB of memory. Without the database it says so, and passes.
.PHONY: vulncheck
vulncheck: ## Check what the programs call against the Go vulnerability database, or the one of GOVULNDB.
	@go -C hack/vulncheck run . $(CURDIR) $(addprefix ./cmd/,$(PROGRAMS))

.PHONY: verify-modules
verify-modules:
	@$(foreach m,$(MODULES),echo 'tidy $(m)'; go -C $(m) mod tidy -diff;)

.PHONY: verify-chart
verify-chart:
	@$(TOOL) helm lint --strict charts/seamark
	go test -count=1 ./test/chart/...
