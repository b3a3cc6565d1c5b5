# Style, and checks of what is generated.

##@ Code

.PHONY: lint
lint: ## Lint every module.
	@failed=0; $(foreach m,$(CODE_MODULES),echo 'lint $(m)'; \
	(cd $(m) && go tool -modfile=$(CURDIR)/hack/tools/lint/go.mod golangci-lint run --allow-serial-runners --config $(CURDIR)/.golangci.yml ./...) || failed=1;) exit $$failed

# Generated CRDs have the words of other projects, and hack/vale those to avoid.
PROSE := '*.md' '*.go' '*.yaml' '*.yml' '*.json' '*.tpl' '*.txt' '*.sh' '*Makefile' '*.mk' '*Dockerfile' .ci/run ':!*/crd/*' ':!*/testdata/*' ':!hack/vale'

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
