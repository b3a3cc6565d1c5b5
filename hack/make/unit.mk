# The tests of a change, and the unit tests.

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

UNIT_PACKAGES := ./api/... ./internal/... ./cmd/... ./hack/... ./test/model/... ./test/clock ./test/expect ./test/chaos/*/ ./test/recipes/disruption
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
