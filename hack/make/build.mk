# The programs, and the example as local processes.

##@ Main

.PHONY: run
run: ## Run the game server example as local processes for half a minute, without a cluster or root.
	@$(call PROGRESS,building seamark,$(GO_BUILD) -o bin/ ./cmd/seamark)
	bin/seamark local -f examples/game-server --until 'pod/game-server-* event=KruiseProbeFailed' --timeout 1m

.PHONY: build
build: ## Build the static programs into bin/, with the version compiled in.
	@$(call PROGRESS,building the programs,$(GO_BUILD) -o bin/ $(addprefix ./cmd/,$(PROGRAMS)))
	@ln -f bin/seamark bin/kubectl-seamark
	@install -m 0755 cmd/seamark/kubectl_complete-seamark bin/
	@$(GO_BUILD) -o bin/example-server ./examples/server
	@$(GO_BUILD) -o bin/example-database ./examples/database
	@echo "built $(addprefix bin/,$(PROGRAMS) example-server example-database), version $(VERSION)"
