# The local cluster, and Seamark in it.

##@ Cluster

# Number of nodes of the local cluster. Default: as many as it has, or one.
NODES ?=
# Container runtimes of the nodes, separated by commas, in the order of the nodes: containerd (2.2), containerd-1.7,
# or debian for Debian's containerd 1.6.
RUNTIME ?= containerd

.PHONY: cluster-up
cluster-up: ## Start or repair a real Kubernetes cluster on this machine. NODES=N sets the number of nodes.
	@$(CLUSTER) up $(if $(NODES),--nodes $(NODES)) --runtime $(RUNTIME) --dir "$(CLUSTER_DIR)"

.PHONY: cluster-down
cluster-down: ## Stop the cluster and remove everything except its programs.
	@$(CLUSTER) down --dir "$(CLUSTER_DIR)"

# Chart values for the local cluster. All nodes share one file system, so each agent finds its own runtime
# by the name of its node. The digests restart the pods of a rebuilt program, and no others.
LOCAL_VALUES = --set-string image.tag=$(IMAGE_TAG) \
	--set-string 'manager.podAnnotations.seamark\.dev/image-digest'=$$(sha256sum <$(IMAGES)/seamark-manager.tar | cut -c-64) \
	--set-string 'agent.podAnnotations.seamark\.dev/image-digest'=$$(sha256sum <$(IMAGES)/seamark-agent.tar | cut -c-64) \
	--set workloads.enabled=true --set 'workloads.controllers={cloneset,statefulset,advancedcronjob,daemonset,broadcastjob,imagepulljob}' --set sidecarSets.enabled=true \
	--set workloads.config.featureGates.PreDownloadImageForInPlaceUpdate=true \
	$(foreach c,workloads injector,--set-string '$(c).podAnnotations.seamark\.dev/image-digest'=$$(sha256sum <$(IMAGES)/seamark-workloads.tar | cut -c-64)) \
	--set-string agent.runtimeFolder=$(CLUSTER_DIR)/nodes \
	--set-string 'agent.criEndpoint=unix:///run/$$(NODE_NAME)/containerd.sock'

# Prints one argument per line, for scripts that run helm themselves.
.PHONY: local-values
local-values:
	@printf '%s\n' $(LOCAL_VALUES)

# End-to-end tests replace CRDs, and own their fields afterwards. Therefore, conflicts are forced.
.PHONY: install
install: cluster-up images tools ## Install Seamark's chart in the cluster, or upgrade it to the current build.
	@$(CLUSTER) load --dir "$(CLUSTER_DIR)" $(IMAGES)/seamark-manager.tar $(IMAGES)/seamark-agent.tar $(IMAGES)/seamark-workloads.tar
	@$(HELM) upgrade --install seamark charts/seamark --kubeconfig $(CLUSTER_DIR)/kubeconfig \
		--namespace seamark-system --create-namespace --force-conflicts $(LOCAL_VALUES) \
		--wait --timeout 3m || { $(KUBECTL) -n seamark-system get pods -o wide; $(KUBECTL) -n seamark-system get events --sort-by=.lastTimestamp | tail -20; exit 1; }
