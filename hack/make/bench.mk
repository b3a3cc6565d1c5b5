# Measures.

##@ Tests

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
