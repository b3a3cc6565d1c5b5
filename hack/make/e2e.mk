# Tests on the local cluster.

##@ Tests

# Arguments of go test in `make test-e2e`, for example E2E_ARGS='-run TestThresholds -v'.
E2E_ARGS ?=
# Number of end-to-end tests that run in parallel. The cluster shares the machine with them.
E2E_PARALLEL ?= 3

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

# Two documents at a time: on a machine that is busier, probes time out, and print something else than the documents show.
.PHONY: test-docs
test-docs: jq build tools example-images ## Run the commands of the documents on the running cluster. test-local runs those that need none.
	SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) go test -count=1 -parallel 2 -timeout 40m ./test/docs -run TestCommands

# The tests whose results may differ with several nodes, or with a runtime whose container events are not used.
.PHONY: test-e2e-nodes
test-e2e-nodes: ## Change the local cluster to two nodes with containerd 1.6 and 1.7 and run demo-guard and the tests that may differ.
	@$(MAKE) --no-print-directory NODES=2 RUNTIME=debian,containerd-1.7 install e2e-images
	SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) go test -count=1 -parallel $(E2E_PARALLEL) -timeout 20m ./test/e2e \
		-run 'TestEveryNode|TestContainerEndWithOtherSubscribers|TestThresholds|TestMessages|TestContainerRestart|TestContainerStart|TestRecreatedPodWithTheSameName|TestHangingProbe|TestLostNode'
	@$(MAKE) --no-print-directory demo-guard
