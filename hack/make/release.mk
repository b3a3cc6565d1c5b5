# The artifacts of a release.

##@ Release

# Registry and path of the images and the chart of a release.
REGISTRY ?= docker.io/seamark
# The URL of the folder that users download the files of a release from.
RELEASE_URL ?= https://github.com/seamark-dev/seamark/releases/download/$(VERSION)
# The folder of the artifacts.
DIST ?= $(CURDIR)/dist

RELEASE := go -C hack/release run .

.PHONY: release
release: tools ## Build all artifacts of VERSION=v0.x.y in dist/ from the current commit, reproducibly.
	@$(call PROGRESS,building the release,$(RELEASE) build --version '$(VERSION)' --source $(CURDIR) --out $(DIST) \
		--registry '$(REGISTRY)' --url '$(RELEASE_URL)' --helm $(HELM))

.PHONY: publish
publish: ## Push the images and the chart in dist/ to REGISTRY, with the credentials of Docker.
	@$(RELEASE) push --layouts $(DIST)/oci --registry '$(REGISTRY)'

# The artifacts of the release that test-release builds.
TEST_DIST := $(CLUSTER_DIR)/dist

# Both builds use the caches of Go and nothing else of each other.
.PHONY: test-release
test-release: ## Build a release of the commit twice, in different folders, and compare all artifacts. Not part of test.
	SEAMARK_DIST=$(TEST_DIST) go -C test/release test -count=1 -v -timeout 90m -run '^TestReproducibleRelease$$' .

.PHONY: test-release-install
test-release-install: test-release tools ## Install that release in the local cluster through a registry. Not part of test.
	@if $(KUBECTL) get --raw /readyz >/dev/null 2>&1; then after=install; else after=cluster-down; fi; \
	trap '$(MAKE) --no-print-directory $$after' EXIT; \
	$(call TIMED,cluster-up); \
	SEAMARK_DIST=$(TEST_DIST) SEAMARK_CLUSTER_DIR=$(CLUSTER_DIR) go -C test/release test -count=1 -v -timeout 30m -run '^TestInstall$$' .
