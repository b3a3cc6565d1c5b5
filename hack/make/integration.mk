# Tests of the programs with an API server.

##@ Tests

# $(call COMPILE,patterns) compiles tests on all cores. `go test -p 1` would use one.
COMPILE = $(call PROGRESS,building the tests,go list -test -export -deps $(1) >/dev/null)

# Most integration tests wait much of the time. Two packages run at the same time, the longest first, and several tests of
# each, with an API server of their own if they need it. With three packages, two processors have no time to spare, and
# requests exceed their timeouts.
INTEGRATION_PACKAGES ?= 2
INTEGRATION_PARALLEL ?= 3

.PHONY: test-integration
test-integration: build tools ## Run the tests that need an API server, etcd and controllers of Kubernetes, all built from source.
	@$(CLUSTER) build --only etcd,kube-apiserver,kube-controller-manager --dir "$(CLUSTER_DIR)"
	@$(call COMPILE,./test/integration/...)
	SEAMARK_CLUSTER_BIN="$(CLUSTER_DIR)/bin" go test -p $(INTEGRATION_PACKAGES) -parallel $(INTEGRATION_PARALLEL) -timeout 20m \
		$(addprefix ./test/integration/,workloads manager agent ...)
	SEAMARK_CLUSTER_BIN="$(CLUSTER_DIR)/bin" go -C test/health test ./...

.PHONY: test-scale
test-scale: ## Count the manager's writes with 3,000 pods on 100 nodes, on a real API server. Not part of test.
	@$(CLUSTER) build --only etcd,kube-apiserver --dir "$(CLUSTER_DIR)"
	SEAMARK_SCALE=full SEAMARK_CLUSTER_BIN="$(CLUSTER_DIR)/bin" go test -count=1 -v -timeout 20m -run TestCountsOfWrites ./test/integration/manager
