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
	go test -count=1 -parallel 1 -timeout 60m ./test/recipes -v; \
	go test -count=1 -parallel 1 -timeout 60m ./test/docs -run TestCommands
