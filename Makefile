# `make` lists the targets. They need Linux, Go, git and GNU make; the cluster and the tests also need
# root. Targets install other missing programs with apt-get, or name them if there is no apt-get.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# Every go command gets the same flags: a package that several modules and targets use is compiled once.
# Only the race detector needs cgo, and its own copy of each package.
# Tests are not vetted, since `make verify` vets everything. grpcnotrace omits a debug page of gRPC with which the
# linker keeps every exported method: a quarter of the agent.
export GOFLAGS := $(sort $(GOFLAGS) -trimpath -buildvcs=false -vet=off -tags=grpcnotrace)
export CGO_ENABLED := 0

# The folder of the local cluster: programs, certificates, logs, images.
CLUSTER_DIR ?= $(CURDIR)/.cluster
# Number of nodes of the local cluster. Default: as many as it has, or one.
NODES ?=
# Container runtimes of the nodes, separated by commas, in the order of the nodes: containerd (2.2), containerd-1.7,
# or debian for Debian's containerd 1.6.
RUNTIME ?= containerd
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# Tag of the images that `make images` builds and `make install` runs.
IMAGE_TAG ?= dev
# Arguments of go test in `make test-e2e`, for example E2E_ARGS='-run TestThresholds -v'.
E2E_ARGS ?=
# Arguments of go test in `make test-ui`.
UI_ARGS ?=
# Number of end-to-end tests that run in parallel. The cluster shares the machine with them.
E2E_PARALLEL ?= 3

CLUSTER := go -C hack/cluster run .
TOOL := go tool -modfile=hack/tools/go.mod
KUBECTL := $(CLUSTER_DIR)/bin/kubectl --kubeconfig $(CLUSTER_DIR)/kubeconfig
IMAGES := $(CLUSTER_DIR)/images
# The folder of built programs. Tests run the programs in it and never compile any.
BIN := $(CURDIR)/bin
export SEAMARK_BIN := $(BIN)
HELM := $(BIN)/helm

PROGRAMS := $(patsubst cmd/%/main.go,%,$(wildcard cmd/*/main.go))
MODULES := $(patsubst ./%,%,$(patsubst %/go.mod,%,$(shell find . \( -path "./.cluster*" -o -path ./.git \) -prune -o -name go.mod -print | sort)))
# Modules that contain code. The others only pin versions of tools.
CODE_MODULES := $(foreach m,$(MODULES),$(if $(shell find $(m) -path "./.cluster*" -prune -o -name '*.go' -print -quit),$(m)))

GO_BUILD := go build -ldflags '-s -w -X main.version=$(VERSION)'

# $(call PROGRESS,text,command) runs a command that is silent for long, and prints the text every 15 seconds.
PROGRESS = (start=$$SECONDS; exec {clock}<> <(:); \
	while true; do read -rt 15 -u $$clock || echo "$(1): $$((SECONDS - start)) s"; done & \
	ticker=$$!; trap 'kill $$ticker' EXIT; $(2))

##@ Main

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## Run the game server example as local processes for half a minute, without a cluster or root.
	@$(call PROGRESS,building seamark,$(GO_BUILD) -o bin/ ./cmd/seamark)
	bin/seamark local -f examples/game-server --until 'pod/game-server-* event=KruiseProbeFailed' --timeout 1m

# The demos type the commands of a user, with the programs of this checkout.
DEMO := KUBECONFIG=$(CLUSTER_DIR)/kubeconfig PATH="$(BIN):$(CLUSTER_DIR)/bin:$$PATH"
NEXT_STEPS = @echo; echo 'To look around: export $(DEMO)'; echo 'To remove everything: make demo-down'

.PHONY: demo
demo: install ## Start a cluster, install Seamark, and show how game server pods are marked and scaled down.
	@$(DEMO) go run ./hack/demo
	$(NEXT_STEPS)

.PHONY: demo-roles
demo-roles: install example-images ## Start a cluster, install Seamark, and show how often an update of a database switches its primary.
	@$(DEMO) go run ./hack/demo --roles
	$(NEXT_STEPS)

# Records a terminal in which the demo types the commands.
.PHONY: demo-record
demo-record: install ## Start a cluster, install Seamark, and record the demo of the READMEs as docs/images/demo.svg.
	@go build -o $(CLUSTER_DIR)/demo ./hack/demo
	@go -C hack/record build -o $(CLUSTER_DIR)/record .
	@$(DEMO) $(CLUSTER_DIR)/record \
		--recording $(CLUSTER_DIR)/demo.cast --image docs/images/demo.svg --rows 21 \
		--title 'Seamark marks game servers' \
		--description 'A terminal: five game servers start, their label changes as matches begin and end, seamark explain lists the reasons for the marks of a pod, and a scale-down removes idle servers only.' \
		-- $(CLUSTER_DIR)/demo --typing
	@$(KUBECTL) delete -f examples/game-server >/dev/null

.PHONY: demo-down
demo-down: cluster-down ## Stop and remove what the demo started.

.PHONY: build
build: ## Build the static programs into bin/, with the version compiled in.
	@$(call PROGRESS,building the programs,$(GO_BUILD) -o bin/ $(addprefix ./cmd/,$(PROGRAMS)))
	@ln -f bin/seamark bin/kubectl-seamark
	@$(GO_BUILD) -o bin/example-server ./examples/server
	@$(GO_BUILD) -o bin/example-database ./examples/database
	@echo "built $(addprefix bin/,$(PROGRAMS) example-server example-database), version $(VERSION)"

# What targets and tests run besides Seamark's own programs.
.PHONY: tools
tools:
	@$(call PROGRESS,building helm and kustomize,go -C hack/tools build -ldflags='-s -w' -o $(BIN)/ \
		helm.sh/helm/v4/cmd/helm sigs.k8s.io/kustomize/kustomize/v5)

# $(call TIMED,targets) makes targets and prints the duration of each.
TIMED = for target in $(1); do start=$$SECONDS; $(MAKE) --no-print-directory $$target; echo "$$target passed after $$((SECONDS - start)) s"; done

.PHONY: test
test: ## Run all tests. Stops what it started; installed packages and built programs stay.
	@$(call TIMED,test-unit test-local test-ui test-reproducible test-integration test-bench test-e2e)

##@ Cluster

.PHONY: cluster-up
cluster-up: ## Start or repair a real Kubernetes cluster on this machine. NODES=N sets the number of nodes.
	@$(CLUSTER) up $(if $(NODES),--nodes $(NODES)) --runtime $(RUNTIME) --dir "$(CLUSTER_DIR)"

.PHONY: cluster-down
cluster-down: ## Stop the cluster and remove everything except its programs.
	@$(CLUSTER) down --dir "$(CLUSTER_DIR)"

.PHONY: images
images: build sbom ## Build the image archives in .cluster/images, without Docker.
	@mkdir -p $(IMAGES)
	@$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/seamark-manager:$(IMAGE_TAG) --out $(IMAGES)/seamark-manager.tar \
		--user 65532 --entrypoint /seamark-manager --file $(CURDIR)/bin/seamark-manager=/seamark-manager
	@$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/seamark-agent:$(IMAGE_TAG) --out $(IMAGES)/seamark-agent.tar \
		--user 0 --entrypoint /seamark-agent --file $(CURDIR)/bin/seamark-agent=/seamark-agent
	@$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/seamark-workloads:$(IMAGE_TAG) --out $(IMAGES)/seamark-workloads.tar \
		--user 65532 --entrypoint /seamark-workloads --file $(CURDIR)/bin/seamark-workloads=/seamark-workloads

.PHONY: sbom
sbom: build ## Write the SBOM of each program to .cluster/images, as CycloneDX JSON.
	@mkdir -p $(IMAGES)
	@$(foreach p,$(PROGRAMS),go -C hack/sbom run . --version $(VERSION) --out $(IMAGES)/$(p).cdx.json $(CURDIR)/bin/$(p);)

# Chart values for the local cluster. All nodes share one file system, so each agent finds its own runtime
# by the name of its node. The digests restart the pods of a rebuilt program, and no others.
LOCAL_VALUES = --set-string image.tag=$(IMAGE_TAG) \
	--set-string 'manager.podAnnotations.seamark\.dev/image-digest'=$$(sha256sum <$(IMAGES)/seamark-manager.tar | cut -c-64) \
	--set-string 'agent.podAnnotations.seamark\.dev/image-digest'=$$(sha256sum <$(IMAGES)/seamark-agent.tar | cut -c-64) \
	--set workloads.enabled=true --set 'workloads.controllers={cloneset,statefulset,advancedcronjob,daemonset,broadcastjob,imagepulljob}' --set sidecarSets.enabled=true \
	--set workloads.config.featureGates.PreDownloadImageForInPlaceUpdate=true \
	$(foreach c,workloads injector,--set-string '$(c).podAnnotations.seamark\.dev/image-digest'=$$(sha256sum <$(IMAGES)/seamark-workloads.tar | cut -c-64)) \
	--set-string agent.runtimeFolder=$(CLUSTER_DIR)/nodes \
	--set-string 'agent.criEndpoint=unix:///run/$$(NODE_NAME)/containerd.sock'

# Prints one argument per line, for scripts that run helm themselves.
.PHONY: local-values
local-values:
	@printf '%s\n' $(LOCAL_VALUES)

# End-to-end tests replace CRDs, and own their fields afterwards. Therefore, conflicts are forced.
.PHONY: install
install: cluster-up images tools ## Install Seamark's chart in the cluster, or upgrade it to the current build.
	@$(CLUSTER) load --dir "$(CLUSTER_DIR)" $(IMAGES)/seamark-manager.tar $(IMAGES)/seamark-agent.tar $(IMAGES)/seamark-workloads.tar
	@$(HELM) upgrade --install seamark charts/seamark --kubeconfig $(CLUSTER_DIR)/kubeconfig \
		--namespace seamark-system --create-namespace --force-conflicts $(LOCAL_VALUES) \
		--wait --timeout 3m || { $(KUBECTL) -n seamark-system get pods -o wide; $(KUBECTL) -n seamark-system get events --sort-by=.lastTimestamp | tail -20; exit 1; }

##@ Tests

# The commit that `make check` compares with: where the branch left main.
BASE ?= $(or $(shell git merge-base HEAD origin/main 2>/dev/null),HEAD)

.PHONY: check
check: ## Vet all code, and lint and test the packages that differ from main, or from BASE. Needs no root and no cluster.
	@hack/check.sh $(BASE) $(CODE_MODULES)

# The race detector needs its own copy of every package that a test links. Every run uses it for the packages
# that do not link the clients of all API groups: those copies compile in 3 minutes of CPU time, the rest would
# take 4 more. Most of Seamark's goroutines and locks are in those packages. RACE=all uses it for the others, too,
# except for the kubelet's code in test/parity, whose tests compare results and share nothing.
RACE ?= light
LIGHT := && !/ k8s\.io\/client-go\/kubernetes\//
# Planners and some controllers start no goroutines, and their models only get slower with the detector, which crashes in
# test/model/marking, as in TestNoStateIsLost. The test of probing/probers measures memory.
PURE := && $$1 !~ /\/test\/model|\/internal\/workloads\/((cloneset|statefulset|daemonset)\.|(broadcastjob|cronjob)\/controller\.)test|\/probing\/probers\.test/
# $(call PACKAGES,module,patterns,condition of awk) prints the packages that have tests and meet the condition.
PACKAGES = go -C $(1) list -test -f '{{.ImportPath}} {{join .Deps " "}}' $(2) | \
	awk '$$1 ~ /\.test$$/ $(3) {sub(/\.test$$/, "", $$1); print $$1}'

# $(call UNIT,module,patterns) tests packages, each once, with or without the race detector.
define UNIT
	@echo 'test $(2) of module $(1)'; \
	race=$$($(call PACKAGES,$(1),$(2),$(PURE) $(if $(filter all,$(RACE)),$(if $(filter test/parity,$(1)),$(LIGHT)),$(LIGHT)))); rest=$$(go -C $(1) list $(2) | grep -vxF "$$race" || true); \
	$(call PROGRESS,testing $(1),[[ -z $$race ]] || CGO_ENABLED=1 go -C $(1) test -race $$race; [[ -z $$rest ]] || go -C $(1) test $$rest)

endef

UNIT_PACKAGES := ./api/... ./internal/... ./cmd/... ./hack/... ./test/model/... ./test/clock ./test/chaos/*/
# Modules of which `go test ./...` runs unit tests. test-monitoring, test-ui, test-release and test-release-install test
# the others.
UNIT_MODULES := $(filter-out . test/health test/monitoring test/release test/ui,$(CODE_MODULES))

.PHONY: test-unit
test-unit: compiler build tools ## Run the unit tests of every module. The race detector is on where it compiles in little time, or with RACE=all.
	$(call UNIT,.,$(UNIT_PACKAGES))
	@echo 'without the race detector, which crashes in this test (golang/go#78156):'
	go test -run '^TestNoStateIsLost$$' ./internal/agent
	$(foreach m,$(UNIT_MODULES),$(call UNIT,$(m),./...))
	@$(MAKE) --no-print-directory test-monitoring
	@$(MAKE) --no-print-directory fuzz-short

.PHONY: test-race
test-race: ## Run test-unit with RACE=all.
	@$(MAKE) --no-print-directory RACE=all test-unit

.PHONY: test-monitoring
test-monitoring: tools $(BIN)/promtool ## Check alerts, dashboard and runbooks against the metrics. Part of test-unit.
	@go build -o $(BIN)/ ./hack/metricsdocs
	go -C test/monitoring test -count=1 ./...

# promtool comes from the Debian package prometheus, which is unpacked and not installed: it would start a server.
$(BIN)/promtool:
	@mkdir -p $(BIN); if program=$$(command -v promtool); then ln -s "$$program" $@; exit; fi; \
	command -v apt-get >/dev/null || { echo 'no promtool and no apt-get: install promtool' >&2; exit 1; }; \
	echo 'unpacking promtool, which the tests of the alerts need'; \
	folder=$$(mktemp -d); trap 'rm -rf $$folder' EXIT; cd $$folder; \
	download() { apt-get -qq -o APT::Sandbox::User=root download prometheus; }; \
	download 2>/dev/null || { apt-get update -qq; download; }; \
	dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xf - ./usr/bin/promtool; mv usr/bin/promtool $@

.PHONY: test-local
test-local: jq build ## Run the examples as local processes and check their output. Needs no cluster and no root.
	go test -count=1 ./examples/... ./test/local/... ./test/docs/...

.PHONY: test-ui
test-ui: chromium ## Test the web page in Chromium. UI_ARGS are arguments of go test, for example -run TestArrows.
	go -C test/ui test -count=1 $(UI_ARGS) .

# The images are built first, so that the test finds compiled packages in the cache.
.PHONY: test-reproducible
test-reproducible: images ## Build the images twice, in different folders, and compare the digests.
	go test -count=1 -v ./test/images/...

# $(call COMPILE,patterns) compiles tests on all cores. `go test -p 1` would use one.
COMPILE = $(call PROGRESS,building the tests,go list -test -export -deps $(1) >/dev/null)

# Most integration tests wait much of the time. Two packages run at the same time, the longest first, and several tests of
# each, with an API server of their own if they need it. With three packages, two processors have no time to spare, and
# requests exceed their timeouts.
INTEGRATION_PACKAGES ?= 2
INTEGRATION_PARALLEL ?= 3

.PHONY: test-integration
test-integration: build tools ## Run the tests that need an API server and etcd, both built from source.
	@$(CLUSTER) build --only etcd,kube-apiserver --dir "$(CLUSTER_DIR)"
	@$(call COMPILE,./test/integration/...)
	SEAMARK_CLUSTER_BIN="$(CLUSTER_DIR)/bin" go test -p $(INTEGRATION_PACKAGES) -parallel $(INTEGRATION_PARALLEL) -timeout 20m \
		$(addprefix ./test/integration/,workloads manager agent ...)
	SEAMARK_CLUSTER_BIN="$(CLUSTER_DIR)/bin" go -C test/health test ./...

.PHONY: test-scale
test-scale: ## Count the manager's writes with 3,000 pods on 100 nodes, on a real API server. Not part of test.
	@$(CLUSTER) build --only etcd,kube-apiserver --dir "$(CLUSTER_DIR)"
	SEAMARK_SCALE=full SEAMARK_CLUSTER_BIN="$(CLUSTER_DIR)/bin" go test -count=1 -v -timeout 20m -run TestCountsOfWrites ./test/integration/manager

.PHONY: test-e2e
test-e2e: jq ## Run the end-to-end tests. A cluster started for them is stopped at the end; KEEP=1 keeps it.
	@if $(KUBECTL) get --raw /readyz >/dev/null 2>&1; then keep=1; else keep=$(KEEP); fi; \
	trap '[[ -n $$keep ]] || $(MAKE) --no-print-directory cluster-down' EXIT; \
	$(call TIMED,install e2e-images example-images); \
	go -C hack/cluster build -o $(BIN)/cluster .; \
	$(call COMPILE,./test/e2e/...); \
	echo 'go test ./test/e2e/...'; \
	SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) go test -count=1 -p 1 -parallel $(E2E_PARALLEL) -timeout 40m ./test/e2e/... $(E2E_ARGS); \
	[[ -n "$(E2E_ARGS)" ]] || { $(call TIMED,test-chaos test-docs); }; \
	[[ -n $$keep ]] || $(call TIMED,test-e2e-nodes)

# Modules of Kubernetes to replace in test-compat, as k8s.io/cri-api=v0.32.3 or k8s.io/cri-client=/folder, separated by
# commas: for module proxies that do not have all modules of a version.
COMPAT_REPLACE ?=

# VERSION is a minor version of Kubernetes here, and not the version that the programs report.
.PHONY: test-compat
test-compat: ## Run the integration and end-to-end tests on another Kubernetes: VERSION=1.32. Not part of test.
	@$(CLUSTER) kubernetes $(VERSION) --dir "$(CURDIR)/.cluster-$(VERSION)" $(if $(COMPAT_REPLACE),--replace $(COMPAT_REPLACE))
	@$(MAKE) --no-print-directory VERSION=compat CLUSTER_DIR="$(CURDIR)/.cluster-$(VERSION)" test-integration
	@$(MAKE) --no-print-directory VERSION=compat CLUSTER_DIR="$(CURDIR)/.cluster-$(VERSION)" test-e2e

.PHONY: test-docs
test-docs: jq build tools example-images ## Run the commands of the documents on the running cluster. test-local runs those that need none.
	SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) go test -count=1 -parallel $(E2E_PARALLEL) -timeout 40m ./test/docs -run TestCommands

# The tests whose results may differ with several nodes, or with a runtime whose container events are not used.
.PHONY: test-e2e-nodes
test-e2e-nodes: ## Change the local cluster to two nodes with containerd 1.6 and 1.7 and run the tests that may differ.
	@$(MAKE) --no-print-directory NODES=2 RUNTIME=debian,containerd-1.7 install e2e-images
	SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) go test -count=1 -parallel $(E2E_PARALLEL) -timeout 20m ./test/e2e \
		-run 'TestEveryNode|TestContainerEndWithOtherSubscribers|TestThresholds|TestMessages|TestContainerRestart|TestContainerStart|TestRecreatedPodWithTheSameName|TestHangingProbe|TestLostNode'

# The short selection on the cluster that runs, whose installed programs are paused meanwhile.
.PHONY: test-chaos
test-chaos: build
	@go -C hack/cluster build -o $(BIN)/cluster .
	SEAMARK_CHAOS=short SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) go test -count=1 -timeout 20m ./test/chaos

# The seed of a run, how long new faults start, the beginning of the names of the faults to inject, and a value to write
# the results into docs/reliability.md.
SEED ?= 1
DURATION ?=
ONLY ?=
WRITE ?=

# The names have apostrophes, which a recipe would have to quote.
chaos soak: export SEAMARK_CHAOS_ONLY = $(ONLY)

# $(call CHAOS,test,duration,variables) runs a test on a cluster of two nodes. A cluster started for it is stopped at the end.
CHAOS = if $(KUBECTL) get --raw /readyz >/dev/null 2>&1; then keep=1; else keep=$(KEEP); fi; \
	trap '[[ -n $$keep ]] || $(MAKE) --no-print-directory cluster-down' EXIT; \
	$(MAKE) --no-print-directory NODES=2 cluster-up; \
	go -C hack/cluster build -o $(BIN)/cluster .; \
	SEAMARK_CHAOS=full SEAMARK_CHAOS_SEED='$(SEED)' SEAMARK_CHAOS_DURATION='$(or $(DURATION),$(2))' \
		SEAMARK_CHAOS_WRITE='$(WRITE)' SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) $(3) \
		go test -count=1 -v -timeout 24h -run '^$(1)$$' ./test/chaos

# Builds the programs with a wall clock that a test can step: the runtime adds its variable wallOffset, in seconds. Only
# the assembly of amd64 changes, so that few packages are compiled again.
CLOCK := $(CLUSTER_DIR)/clock
.PHONY: clock-programs
clock-programs:
	@mkdir -p $(CLOCK); source=$$(go env GOROOT)/src/runtime/time_linux_amd64.s; \
	{ sed 's|^\tMOVQ\t16(SP), AX\t// realtime sec$$|&\n\tADDQ\truntime·wallOffset(SB), AX|' $$source; \
		echo 'GLOBL runtime·wallOffset(SB), NOPTR, $$8'; } >$(CLOCK)/time.s; \
	echo "{\"Replace\": {\"$$source\": \"$(CLOCK)/time.s\"}}" >$(CLOCK)/overlay.json; \
	$(call PROGRESS,building programs whose clocks step,go build -overlay $(CLOCK)/overlay.json -o $(CLOCK)/bin/ \
		./cmd/seamark-manager ./cmd/seamark-agent ./cmd/seamark-workloads); \
	go test -overlay $(CLOCK)/overlay.json -o $(CLOCK)/clock.test ./test/chaos/clock

.PHONY: chaos
chaos: build clock-programs ## Inject faults from SEED=n for DURATION=10m, those that begin with ONLY=name, and print what was lost. Not part of test.
	@$(call CHAOS,TestChaos,10m,SEAMARK_CHAOS_CLOCK=$(CLOCK)/bin)

.PHONY: soak
soak: build ## Churn 100 pods with 300 probes for DURATION=30m, and fail if a program grows. Not part of test.
	@$(call CHAOS,TestSoak,30m)

.PHONY: e2e-images
e2e-images:
	@$(GO_BUILD) -o $(IMAGES)/bin/ ./test/e2e/target
	@$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/probe-target:dev --out $(IMAGES)/probe-target.tar \
		--user 65532 --entrypoint /target --file $(IMAGES)/bin/target=/target
	@$(CLUSTER) load --dir "$(CLUSTER_DIR)" $(IMAGES)/probe-target.tar

.PHONY: example-images
example-images: ## Build the images of the examples and load them into the local cluster.
	@$(GO_BUILD) -o $(IMAGES)/bin/ ./examples/server
	@$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/example-server:dev --out $(IMAGES)/example-server.tar \
		--user 65532 --entrypoint /bin/example-server --file $(IMAGES)/bin/server=/bin/example-server
	@for version in v1 v2; do \
		go build -ldflags "-s -w -X main.version=$$version" -o $(IMAGES)/bin/database-$$version ./examples/database; \
		$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/example-database:$$version --out $(IMAGES)/example-database-$$version.tar \
			--user 65532 --entrypoint /bin/example-database --file $(IMAGES)/bin/database-$$version=/bin/example-database; \
	done
	@$(CLUSTER) load --dir "$(CLUSTER_DIR)" $(addprefix $(IMAGES)/,example-server.tar example-database-v1.tar example-database-v2.tar)
	@for socket in $(CLUSTER_DIR)/nodes/*/containerd.sock; do $(CLUSTER_DIR)/bin/ctr --address $$socket --namespace k8s.io \
		images tag --force docker.io/library/busybox:1.35 docker.io/library/busybox:1.35-musl >/dev/null; done

# Arguments of go test in `make bench`, for example BENCH_ARGS='-run /reports'.
BENCH_ARGS ?=

# $(call BENCH,sizes,arguments) runs the measures.
BENCH = SEAMARK_BENCH=$(1) SEAMARK_CLUSTER_BIN="$(CLUSTER_DIR)/bin" go test -count=1 $(2)

.PHONY: bench
bench: build ## Measure costs and latencies as ratios to floors of the same run, and write docs/performance.md and docs/performance.
	@$(CLUSTER) build --only etcd,kube-apiserver,kube-controller-manager --dir "$(CLUSTER_DIR)"
	$(call BENCH,full,-v -timeout 4h ./test/bench $(BENCH_ARGS))

.PHONY: test-bench
test-bench: build ## Run the measures of make bench with small sizes, and check that each produces its values.
	@$(CLUSTER) build --only etcd,kube-apiserver,kube-controller-manager --dir "$(CLUSTER_DIR)"
	$(call BENCH,quick,-parallel 4 ./test/bench/...)

# $(call FUZZ,command,limit) runs each fuzz target in the folders that the command prints, for a time or a number of runs.
FUZZ = folders=$$($(1)); [[ -n $$folders ]] || { echo 'no packages to fuzz' >&2; exit 1; }; \
	for folder in $$folders; do { grep -shoE '^func Fuzz[A-Za-z0-9_]*' "$$folder"/*_test.go || true; } | while read -r _ target; do \
	echo "fuzz $${folder\#$(CURDIR)/} $$target"; go -C "$$folder" test -run='^$$' -fuzz="^$$target$$" -fuzztime=$(2) .; done; done

# Fuzzing needs its own copy of every package, as the race detector does, and covers the light packages here. The
# unit tests of the others run the seeds of their fuzz targets. The limit is a number of runs, because at the end of a
# time Go may fail a target with "context deadline exceeded" (golang/go#75804, fixed in Go 1.27).
.PHONY: fuzz-short
fuzz-short: ## Run fuzz targets 300 times each, or FUZZTIME. Part of test-unit.
	@packages=$$($(call PACKAGES,.,./api/... ./internal/...,$(LIGHT))); [[ -n $$packages ]] || { echo 'no packages to fuzz' >&2; exit 1; }; \
	$(call FUZZ,go list -f '{{.Dir}}' $$packages,$(or $(FUZZTIME),300x))

.PHONY: fuzz
fuzz: ## Run each fuzz target for 5 minutes, or FUZZTIME, including the comparison with the kubelet.
	@$(call FUZZ,grep -rlE --include='*_test.go' '^func Fuzz' ./api ./internal ./test/parity | xargs -n1 dirname | sort -u,$(or $(FUZZTIME),5m))

# $(call INSTALL,program,packages,what needs it) installs a missing program with apt-get.
INSTALL = command -v $(1) >/dev/null || { echo 'installing $(1), which $(3)'; \
	command -v apt-get >/dev/null || { echo 'no $(1) and no apt-get: install $(1)' >&2; exit 1; }; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(2) >/dev/null; }

.PHONY: compiler
compiler:
	@$(call INSTALL,$(firstword $(shell go env CC)),gcc libc6-dev,the race detector needs)

.PHONY: chromium
chromium:
	@$(call INSTALL,chromium,chromium,the tests of the web page run)

.PHONY: jq
jq:
	@$(call INSTALL,jq,jq,the commands of the documents use)

##@ Release

# Registry and path of the images and the chart of a release.
REGISTRY ?= docker.io/seamark
# The URL of the folder that users download the files of a release from.
RELEASE_URL ?= https://github.com/seamark-dev/seamark/releases/download/$(VERSION)
# The folder of the artifacts.
DIST ?= $(CURDIR)/dist

RELEASE := go -C hack/release run .

.PHONY: release
release: tools ## Build all artifacts of VERSION=v0.x.y in dist/ from the current commit, reproducibly.
	@$(call PROGRESS,building the release,$(RELEASE) build --version '$(VERSION)' --source $(CURDIR) --out $(DIST) \
		--registry '$(REGISTRY)' --url '$(RELEASE_URL)' --helm $(HELM))

.PHONY: publish
publish: ## Push the images and the chart in dist/ to REGISTRY, with the credentials of Docker.
	@$(RELEASE) push --layouts $(DIST)/oci --registry '$(REGISTRY)'

# The artifacts of the release that test-release builds.
TEST_DIST := $(CLUSTER_DIR)/dist

# Both builds use the caches of Go and nothing else of each other.
.PHONY: test-release
test-release: ## Build a release of the commit twice, in different folders, and compare all artifacts. Not part of test.
	SEAMARK_DIST=$(TEST_DIST) go -C test/release test -count=1 -v -timeout 90m -run '^TestReproducibleRelease$$' .

.PHONY: test-release-install
test-release-install: test-release tools ## Install that release in the local cluster through a registry. Not part of test.
	@if $(KUBECTL) get --raw /readyz >/dev/null 2>&1; then after=install; else after=cluster-down; fi; \
	trap '$(MAKE) --no-print-directory $$after' EXIT; \
	$(call TIMED,cluster-up); \
	SEAMARK_DIST=$(TEST_DIST) SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) go -C test/release test -count=1 -v -timeout 30m -run '^TestInstall$$' .

##@ Code

# Folders of the chart with copies of config/.
CHART_FILES := crd rbac policies serverless workloads cronjobs daemonsets broadcastjobs imagepulls sidecarsets

.PHONY: generate
generate: ## Write deepcopy code, CRDs, docs/api.md, docs/metrics.md, and the chart's copies of config/.
	@$(TOOL) controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...
	@crds=$$(mktemp -d); trap 'rm -rf $$crds' EXIT; \
	$(TOOL) controller-gen crd paths=./api/... output:crd:dir=$$crds; \
	go run ./hack/crdmerge -serve apps.kruise.io_statefulsets=v1alpha1 -serve apps.kruise.io_sidecarsets=v1beta1 \
		-serve apps.kruise.io_advancedcronjobs=v1beta1 -serve apps.kruise.io_daemonsets=v1beta1 \
		-serve apps.kruise.io_broadcastjobs=v1beta1 -serve apps.kruise.io_imagepulljobs=v1beta1 config/crd/embedded $$crds; \
	for crd in $$crds/*.yaml; do case $${crd##*/} in \
		apps.kruise.io_sidecarsets.yaml) cp $$crd config/crd/sidecarsets/;; \
		apps.kruise.io_advancedcronjobs.yaml) cp $$crd config/crd/cronjobs/;; \
		apps.kruise.io_daemonsets.yaml) cp $$crd config/crd/daemonsets/;; \
		apps.kruise.io_broadcastjobs.yaml) cp $$crd config/crd/broadcastjobs/;; \
		apps.kruise.io_imagepulljobs.yaml) cp $$crd config/crd/imagepulls/;; \
		apps.kruise.io_clonesets.yaml|apps.kruise.io_statefulsets.yaml) cp $$crd config/crd/workloads/;; \
		*) cp $$crd config/crd/bases/;; \
	esac; done
	@go tool -modfile=hack/tools/apidocs/go.mod crd-ref-docs --log-level ERROR --config hack/apidocs/config.yaml --renderer markdown \
		--templates-dir hack/apidocs/templates --source-path api --output-path docs/api.md
	@rm -rf $(addprefix charts/seamark/files/,$(CHART_FILES)) && mkdir -p $(addprefix charts/seamark/files/,$(CHART_FILES))
	@cp config/crd/bases/*.yaml charts/seamark/files/crd/
	@cp $(filter-out %/kustomization.yaml,$(wildcard config/crd/workloads/*.yaml)) config/workloads/rbac.yaml config/workloads/grants.yaml config/workloads/policy.yaml charts/seamark/files/workloads/
	@cp config/cronjobs/rbac.yaml config/cronjobs/policy.yaml charts/seamark/files/cronjobs/
	@cp config/daemonsets/rbac.yaml charts/seamark/files/daemonsets/
	@cp config/broadcastjobs/rbac.yaml charts/seamark/files/broadcastjobs/
	@cp config/crd/cronjobs/apps.kruise.io_advancedcronjobs.yaml config/crd/daemonsets/apps.kruise.io_daemonsets.yaml config/crd/broadcastjobs/apps.kruise.io_broadcastjobs.yaml config/crd/imagepulls/apps.kruise.io_imagepulljobs.yaml charts/seamark/files/workloads/
	@cp config/imagepulls/rbac.yaml config/imagepulls/author.yaml charts/seamark/files/imagepulls/
	@cp $(addprefix config/sidecarsets/,rbac.yaml injector-rbac.yaml author.yaml webhooks.yaml injector.yaml) config/crd/sidecarsets/apps.kruise.io_sidecarsets.yaml charts/seamark/files/sidecarsets/
	@$(foreach f,rbac policies serverless,cp $(filter-out %/kustomization.yaml,$(wildcard config/$(f)/*.yaml)) charts/seamark/files/$(f)/;)
	@page=$$(go run ./hack/metricsdocs); echo "$$page" >docs/metrics.md

.PHONY: lint
lint: ## Lint every module.
	@failed=0; $(foreach m,$(CODE_MODULES),echo 'lint $(m)'; \
	(cd $(m) && go tool -modfile=$(CURDIR)/hack/tools/lint/go.mod golangci-lint run --allow-serial-runners --config $(CURDIR)/.golangci.yml ./...) || failed=1;) exit $$failed

# Generated CRDs have the words of other projects, and hack/vale those to avoid.
PROSE := '*.md' '*.go' '*.yaml' '*.yml' '*.json' '*.tpl' '*.txt' '*.sh' '*Makefile' '*Dockerfile' .ci/run ':!*/crd/*' ':!*/testdata/*' ':!hack/vale'

.PHONY: lint-prose
lint-prose: compiler ## Check the language of documents, comments, string literals and manifests.
	@echo 'lint prose'; git ls-files -co --exclude-standard $(PROSE) | CGO_ENABLED=1 xargs go tool -modfile=hack/tools/vale/go.mod vale --output=line
	go test -count=1 -run TestLinesWrap ./test/docs

.PHONY: fmt
fmt: ## Format the code of every module.
	@$(foreach m,$(CODE_MODULES),(cd $(m) && go tool -modfile=$(CURDIR)/hack/tools/lint/go.mod golangci-lint fmt --config $(CURDIR)/.golangci.yml);)

.PHONY: verify
verify: verify-generate verify-modules verify-chart lint lint-prose vulncheck ## Check generated files, modules, the chart and style.
	@$(foreach m,$(CODE_MODULES),echo 'vet $(m)'; go -C $(m) vet ./...;)

# Compares with the state before, so that it also works with uncommitted changes.
.PHONY: verify-generate
verify-generate:
	@echo 'generate'; state() { git diff HEAD; git status --porcelain; }; before=$$(mktemp); state >$$before; \
	trap 'rm -f $$before' EXIT; $(MAKE) --no-print-directory generate; \
	state | diff -u $$before - || { echo 'generated files are out of date: run make generate and commit' >&2; exit 1; }

# The scan takes a minute and 5 GB of memory. If vuln.go.dev is unreachable, the check is skipped with a message;
# a database that GOVULNDB names must be reachable. Without it, curl finds out whether the database is reachable.
.PHONY: vulncheck
vulncheck: ## Check the programs against the Go vulnerability database, or the one at the URL in GOVULNDB.
	@database=$${GOVULNDB:-https://vuln.go.dev}; skipped=; \
	if [[ -z $${GOVULNDB-} ]]; then \
		if ! ($(call INSTALL,curl,curl ca-certificates,the check for vulnerabilities uses)); then skipped='there is no curl'; \
		elif ! curl -fsS --max-time 15 -o /dev/null $$database/index/db.json; then skipped="$$database is unreachable"; fi; \
	fi; \
	if [[ -n $$skipped ]]; then \
		echo "vulncheck: SKIPPED, nothing was checked: $$skipped. Set GOVULNDB to the URL of a copy."; \
	else $(call PROGRESS,scanning the programs,$(TOOL) govulncheck -db "$$database" $(addprefix ./cmd/,$(PROGRAMS))); fi

.PHONY: verify-modules
verify-modules:
	@$(foreach m,$(MODULES),echo 'tidy $(m)'; go -C $(m) mod tidy -diff;)

.PHONY: verify-chart
verify-chart: tools
	@$(HELM) lint --strict charts/seamark
	go test -count=1 ./test/chart/...
