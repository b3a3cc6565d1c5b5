# Generated files.

##@ Code

# Folders of config/ that are copied to the chart, those of the kinds among them, without what only kustomize needs.
KIND_FOLDERS := $(filter-out bases,$(notdir $(patsubst %/,%,$(wildcard config/crd/*/))))
CHART_FOLDERS := rbac policies serverless $(foreach f,$(KIND_FOLDERS),$(if $(wildcard config/$(f)/*.yaml),$(f)))
CHART_FILES := charts/seamark/files

.PHONY: generate
generate: ## Write deepcopy code, CRDs, docs/api.md, docs/metrics.md, and the chart's copies of config/.
	@$(TOOL) controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...
	@crds=$$(mktemp -d); trap 'rm -rf $$crds' EXIT; \
	$(TOOL) controller-gen crd paths=./api/... output:crd:dir=$$crds; \
	go run ./hack/crdmerge config/embedded $$crds; \
	for crd in $$crds/*.yaml; do cp $$crd $$(ls config/crd/*/$${crd##*/} 2>/dev/null || echo config/crd/bases/); done
	@go tool -modfile=hack/tools/apidocs/go.mod crd-ref-docs --log-level ERROR --config hack/apidocs/config.yaml --renderer markdown \
		--templates-dir hack/apidocs/templates --source-path api --output-path docs/api.md
	@for folder in crd $(CHART_FOLDERS); do rm -rf $(CHART_FILES)/$$folder && mkdir $(CHART_FILES)/$$folder; done
	@cp config/crd/bases/*.yaml $(CHART_FILES)/crd/
	@$(foreach f,$(KIND_FOLDERS),cp config/crd/$(f)/*_*.yaml $(CHART_FILES)/workloads/;)
	@$(foreach f,$(CHART_FOLDERS),cp $(filter-out %/kustomization.yaml %/workloads.yaml,$(wildcard config/$(f)/*.yaml)) $(CHART_FILES)/$(f)/;)
	@page=$$(go run ./hack/metricsdocs); echo "$$page" >docs/metrics.md
