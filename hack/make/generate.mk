# Generated files.

##@ Code

# Folders of the chart with copies of config/.
CHART_FILES := crd rbac policies serverless workloads cronjobs daemonsets broadcastjobs imagepulls sidecarsets

.PHONY: generate
generate: ## Write deepcopy code, CRDs, docs/api.md, docs/metrics.md, and the chart's copies of config/.
	@$(TOOL) controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...
	@crds=$$(mktemp -d); trap 'rm -rf $$crds' EXIT; \
	$(TOOL) controller-gen crd paths=./api/... output:crd:dir=$$crds; \
	go run ./hack/crdmerge -serve apps.kruise.io_statefulsets=v1alpha1 -serve apps.kruise.io_sidecarsets=v1beta1 \
		-serve apps.kruise.io_advancedcronjobs=v1beta1 -serve apps.kruise.io_daemonsets=v1beta1 \
		-serve apps.kruise.io_broadcastjobs=v1beta1 -serve apps.kruise.io_imagepulljobs=v1beta1 config/embedded $$crds; \
	for crd in $$crds/*.yaml; do case $${crd##*/} in \
		apps.kruise.io_sidecarsets.yaml) cp $$crd config/crd/sidecarsets/;; \
		apps.kruise.io_advancedcronjobs.yaml) cp $$crd config/crd/cronjobs/;; \
		apps.kruise.io_daemonsets.yaml) cp $$crd config/crd/daemonsets/;; \
		apps.kruise.io_broadcastjobs.yaml) cp $$crd config/crd/broadcastjobs/;; \
		apps.kruise.io_imagepulljobs.yaml) cp $$crd config/crd/imagepulls/;; \
		apps.kruise.io_clonesets.yaml|apps.kruise.io_statefulsets.yaml) cp $$crd config/crd/workloads/;; \
		*) cp $$crd config/crd/bases/;; \
	esac; done
	@go tool -modfile=hack/tools/apidocs/go.mod crd-ref-docs --log-level ERROR --config hack/apidocs/config.yaml --renderer markdown \
		--templates-dir hack/apidocs/templates --source-path api --output-path docs/api.md
	@rm -rf $(addprefix charts/seamark/files/,$(CHART_FILES)) && mkdir -p $(addprefix charts/seamark/files/,$(CHART_FILES))
	@cp config/crd/bases/*.yaml charts/seamark/files/crd/
	@cp $(filter-out %/kustomization.yaml,$(wildcard config/crd/workloads/*.yaml)) config/workloads/rbac.yaml config/workloads/grants.yaml config/workloads/policy.yaml charts/seamark/files/workloads/
	@cp config/cronjobs/rbac.yaml config/cronjobs/policy.yaml charts/seamark/files/cronjobs/
	@cp config/daemonsets/rbac.yaml charts/seamark/files/daemonsets/
	@cp config/broadcastjobs/rbac.yaml charts/seamark/files/broadcastjobs/
	@cp config/crd/cronjobs/apps.kruise.io_advancedcronjobs.yaml config/crd/daemonsets/apps.kruise.io_daemonsets.yaml config/crd/broadcastjobs/apps.kruise.io_broadcastjobs.yaml config/crd/imagepulls/apps.kruise.io_imagepulljobs.yaml charts/seamark/files/workloads/
	@cp config/imagepulls/rbac.yaml config/imagepulls/author.yaml charts/seamark/files/imagepulls/
	@cp $(addprefix config/sidecarsets/,rbac.yaml injector-rbac.yaml author.yaml webhooks.yaml injector.yaml) config/crd/sidecarsets/apps.kruise.io_sidecarsets.yaml charts/seamark/files/sidecarsets/
	@$(foreach f,rbac policies serverless,cp $(filter-out %/kustomization.yaml,$(wildcard config/$(f)/*.yaml)) charts/seamark/files/$(f)/;)
	@page=$$(go run ./hack/metricsdocs); echo "$$page" >docs/metrics.md
