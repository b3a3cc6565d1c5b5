# Fuzz targets.

##@ Tests

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
