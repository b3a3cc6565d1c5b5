# Faults on the local cluster.

##@ Tests

# The short selection on the cluster that runs, whose installed programs are paused meanwhile.
.PHONY: test-chaos
test-chaos: build ## Inject a short selection of faults on the cluster that runs. Part of test-e2e.
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
