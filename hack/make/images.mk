# Archives of images, without Docker.

##@ Cluster

# Tag of the images that `make images` builds and `make install` runs.
IMAGE_TAG ?= dev

.PHONY: images
images: build sbom ## Build the image archives in .cluster/images, without Docker.
	@mkdir -p $(IMAGES)
	@$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/seamark-manager:$(IMAGE_TAG) --out $(IMAGES)/seamark-manager.tar \
		--user 65532 --entrypoint /seamark-manager --file $(CURDIR)/bin/seamark-manager=/seamark-manager
	@$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/seamark-agent:$(IMAGE_TAG) --out $(IMAGES)/seamark-agent.tar \
		--user 0 --entrypoint /seamark-agent --file $(CURDIR)/bin/seamark-agent=/seamark-agent
	@$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/seamark-workloads:$(IMAGE_TAG) --out $(IMAGES)/seamark-workloads.tar \
		--user 65532 --entrypoint /seamark-workloads --file $(CURDIR)/bin/seamark-workloads=/seamark-workloads

.PHONY: sbom
sbom: build ## Write the SBOM of each program to .cluster/images, as CycloneDX JSON.
	@mkdir -p $(IMAGES)
	@$(foreach p,$(PROGRAMS),go -C hack/sbom run . --version $(VERSION) --out $(IMAGES)/$(p).cdx.json $(CURDIR)/bin/$(p);)

.PHONY: e2e-images
e2e-images:
	@$(GO_BUILD) -o $(IMAGES)/bin/ ./test/e2e/target
	@$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/probe-target:dev --out $(IMAGES)/probe-target.tar \
		--user 65532 --entrypoint /target --file $(IMAGES)/bin/target=/target
	@$(CLUSTER) load --dir "$(CLUSTER_DIR)" $(IMAGES)/probe-target.tar

.PHONY: example-images
example-images: ## Build the images of the examples and load them into the local cluster.
	@$(GO_BUILD) -o $(IMAGES)/bin/ ./examples/server
	@$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/example-server:dev --out $(IMAGES)/example-server.tar \
		--user 65532 --entrypoint /bin/example-server --file $(IMAGES)/bin/server=/bin/example-server
	@for version in v1 v2; do \
		go build -ldflags "-s -w -X main.version=$$version" -o $(IMAGES)/bin/database-$$version ./examples/database; \
		$(CLUSTER) image --dir "$(CLUSTER_DIR)" --name docker.io/seamark/example-database:$$version --out $(IMAGES)/example-database-$$version.tar \
			--user 65532 --entrypoint /bin/example-database --file $(IMAGES)/bin/database-$$version=/bin/example-database; \
	done
	@$(CLUSTER) load --dir "$(CLUSTER_DIR)" $(addprefix $(IMAGES)/,example-server.tar example-database-v1.tar example-database-v2.tar)
	@for socket in $(CLUSTER_DIR)/nodes/*/containerd.sock; do $(CLUSTER_DIR)/bin/ctr --address $$socket --namespace k8s.io \
		images tag --force docker.io/library/busybox:1.35 docker.io/library/busybox:1.35-musl >/dev/null; done
