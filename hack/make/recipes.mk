# Recipes: real programs from Debian packages on the local cluster.

##@ Tests

# Names of recipes, which are folders of examples/recipes. Default: all. RECIPE=changed selects those that differ from main,
# or from the commit BASE.
RECIPE ?=
RECIPES = $(if $(filter changed,$(RECIPE)),$(shell hack/recipes.sh $(BASE)),$(or $(RECIPE),$(patsubst examples/recipes/%/image/,%,$(wildcard examples/recipes/*/image/))))

# An archive is built once, and again when its description changes.
.PHONY: recipe-archives
recipe-archives:
	@$(foreach r,$(RECIPES),$(CLUSTER) recipe-image --dir "$(CLUSTER_DIR)" $(CURDIR)/examples/recipes/$(r)/image --out $(IMAGES)/recipe-$(r).tar;)

.PHONY: recipe-images
recipe-images: recipe-archives ## Build the images of the recipes from Debian packages, and load them into the local cluster. RECIPE=NAME selects.
	@$(if $(RECIPES),$(CLUSTER) load --dir "$(CLUSTER_DIR)" $(patsubst %,$(IMAGES)/recipe-%.tar,$(RECIPES)))

# Each recipe is tested twice: by its test, and by the commands of its README.
.PHONY: test-recipes
test-recipes: ## Run the recipes on the local cluster. RECIPE=NAME selects, RECIPE=changed those of a branch. Not part of test.
	@$(if $(RECIPES),,echo 'test-recipes: no recipe has changed'; exit 0;) \
	if $(KUBECTL) get --raw /readyz >/dev/null 2>&1; then keep=1; else keep=$(KEEP); fi; \
	trap '[[ -n $$keep ]] || $(MAKE) --no-print-directory cluster-down' EXIT; \
	$(call TIMED,jq install recipe-images); \
	$(call COMPILE,./test/recipes ./test/docs); \
	export SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) SEAMARK_RECIPES='$(RECIPES)'; \
	go test -count=1 -parallel 1 -timeout 60m ./test/recipes -run TestRecipes -v; \
	go test -count=1 -parallel 1 -timeout 60m ./test/docs -run TestCommands

# What clients and players notice. Each target replaces its table of docs/disruption.md.

# How often each program is upgraded per variant, or its node is lost per marker.
RUNS ?= 10
# How often the servers of the game are scaled in, rolled out and drained: 102 times together.
ROUNDS ?= 34
DISRUPTED = $(or $(RECIPE),etcd patroni redis)

.PHONY: bench-disruption
bench-disruption: bench-upgrades bench-matches bench-node-loss ## Measure what clients and players notice with and without Seamark, and write docs/disruption.md. RECIPE=NAME, RUNS=N, ROUNDS=N.

.PHONY: bench-upgrades
bench-upgrades: ## Upgrade databases on the local cluster while a client writes. RECIPE=NAME, RUNS=N.
	@$(MAKE) --no-print-directory install recipe-images RECIPE='$(DISRUPTED)'
	SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) SEAMARK_DISRUPTION='$(DISRUPTED)' SEAMARK_RUNS=$(RUNS) \
		go test -count=1 -parallel 1 -timeout 10h ./test/recipes -run TestUpgrades -v

.PHONY: bench-matches
bench-matches: ## Scale in, roll out and drain servers of a game with players. ROUNDS=N.
	@$(MAKE) --no-print-directory install recipe-images RECIPE=openttd
	SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) SEAMARK_RUNS=$(ROUNDS) \
		go test -count=1 -parallel 2 -timeout 10h ./test/recipes -run TestMatches -v

.PHONY: bench-node-loss
bench-node-loss: ## Change the local cluster to four nodes, and cut off that of a primary. RECIPE=NAME, RUNS=N.
	@$(MAKE) --no-print-directory NODES=4 install recipe-images RECIPE='$(DISRUPTED)'
	SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) SEAMARK_DISRUPTION='$(DISRUPTED)' SEAMARK_RUNS=$(RUNS) \
		go test -count=1 -parallel 1 -timeout 10h ./test/recipes -run TestNodeLoss -v
