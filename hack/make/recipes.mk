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

# Upgrades per program and variant. Default of `make bench-disruption`: as often as in docs/disruption.md.
RUNS ?= 10

.PHONY: bench-disruption
bench-disruption: RECIPES = $(or $(RECIPE),etcd patroni redis)
bench-disruption: ## Upgrade databases on the local cluster while a client writes, with and without Seamark, and write docs/disruption.md. RECIPE=NAME, RUNS=N.
	@$(MAKE) --no-print-directory install recipe-images RECIPE='$(RECIPES)'
	SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) SEAMARK_DISRUPTION='$(RECIPES)' SEAMARK_RUNS=$(RUNS) \
		go test -count=1 -parallel 1 -timeout 10h ./test/recipes -run TestDisruption -v
