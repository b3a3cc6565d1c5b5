# The demos on the local cluster.

##@ Main

# The demos type the commands of a user, with the programs of this checkout.
DEMO := KUBECONFIG=$(CLUSTER_DIR)/kubeconfig PATH="$(BIN):$(CLUSTER_DIR)/bin:$$PATH"
NEXT_STEPS = @echo; echo 'To look around: export $(DEMO)'; echo 'To remove everything: make demo-down'

.PHONY: demo
demo: install ## Start a cluster, install Seamark, and show how game server pods are marked and scaled down.
	@$(DEMO) go run ./hack/demo
	$(NEXT_STEPS)

.PHONY: demo-roles
demo-roles: install example-images ## Start a cluster, install Seamark, and show how often an update of a database switches its primary.
	@$(DEMO) go run ./hack/demo --roles
	$(NEXT_STEPS)

# It needs two nodes, and a cluster that already runs gets the second one.
.PHONY: demo-guard
demo-guard: ## Start a cluster of two nodes, install Seamark, and show that a drain, a deletion and a rollout wait for a match.
	@$(MAKE) --no-print-directory NODES=2 install
	@$(DEMO) go run ./hack/demo --guard
	$(NEXT_STEPS)

# Records a terminal in which the demo types the commands.
.PHONY: demo-record
demo-record: install ## Start a cluster, install Seamark, and record the demo of the READMEs as docs/images/demo.svg.
	@go build -o $(CLUSTER_DIR)/demo ./hack/demo
	@go -C hack/record build -o $(CLUSTER_DIR)/record .
	@$(DEMO) $(CLUSTER_DIR)/record \
		--recording $(CLUSTER_DIR)/demo.cast --image docs/images/demo.svg --rows 21 \
		--title 'Seamark marks game servers' \
		--description 'A terminal: five game servers start, their label changes as matches begin and end, seamark explain lists the reasons for the marks of a pod, and a scale-down removes idle servers only.' \
		-- $(CLUSTER_DIR)/demo --typing
	@$(KUBECTL) delete -f examples/game-server >/dev/null

.PHONY: demo-down
demo-down: cluster-down ## Stop and remove what the demo started.
