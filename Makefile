# `make` lists the targets, which are in hack/make, one idea per file. They need Linux, Go, git and GNU make; the
# cluster and the tests also need root. Targets install other missing programs with apt-get, or name them if there is
# no apt-get.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# Every go command gets the same flags: a package that several modules and targets use is compiled once.
# Only the race detector needs cgo, and its own copy of each package.
# Tests are not vetted, since `make verify` vets everything. grpcnotrace omits a debug page of gRPC with which the
# linker keeps every exported method: a quarter of the agent.
export GOFLAGS := $(sort $(GOFLAGS) -trimpath -buildvcs=false -vet=off -tags=grpcnotrace)
export CGO_ENABLED := 0

# The folder of the local cluster: programs, certificates, logs, images.
CLUSTER_DIR ?= $(CURDIR)/.cluster
# The version that the programs report. Default: the name of the commit.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

CLUSTER := go -C hack/cluster run .
TOOL := go tool -modfile=hack/tools/go.mod
KUBECTL := $(CLUSTER_DIR)/bin/kubectl --kubeconfig $(CLUSTER_DIR)/kubeconfig
IMAGES := $(CLUSTER_DIR)/images
# The folder of built programs. Tests run the programs in it and never compile any.
BIN := $(CURDIR)/bin
export SEAMARK_BIN := $(BIN)
HELM := $(BIN)/helm

PROGRAMS := $(patsubst cmd/%/main.go,%,$(wildcard cmd/*/main.go))
MODULES := $(patsubst ./%,%,$(patsubst %/go.mod,%,$(shell find . \( -path "./.cluster*" -o -path ./.git \) -prune -o -name go.mod -print | sort)))
# Modules that contain code. The others only pin versions of tools.
CODE_MODULES := $(foreach m,$(MODULES),$(if $(shell find $(m) -path "./.cluster*" -prune -o -name '*.go' -print -quit),$(m)))

GO_BUILD := go build -ldflags '-s -w -X main.version=$(VERSION)'

# $(call PROGRESS,text,command) runs a command that is silent for long, and prints the text every 15 seconds.
PROGRESS = (start=$$SECONDS; exec {clock}<> <(:); \
	while true; do read -rt 15 -u $$clock || echo "$(1): $$((SECONDS - start)) s"; done & \
	ticker=$$!; trap 'kill $$ticker' EXIT; $(2))

# $(call TIMED,targets) makes targets and prints the duration of each.
TIMED = for target in $(1); do start=$$SECONDS; $(MAKE) --no-print-directory $$target; echo "$$target passed after $$((SECONDS - start)) s"; done

##@ Main

# Targets of several files are listed together if their files name the same section after ##@.
.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@/ {section = substr($$0, 5); if (!(section in lines)) {names[++n] = section; lines[section] = ""}} \
		/^[a-z0-9-]+:.*## / {lines[section] = lines[section] sprintf("  %-18s %s\n", $$1, $$2)} \
		END {for (i = 1; i <= n; i++) printf "\n%s\n%s", names[i], lines[names[i]]}' $(MAKEFILE_LIST)

.PHONY: test
test: ## Run all tests. Stops what it started; installed packages and built programs stay.
	@$(call TIMED,test-unit test-local test-ui test-reproducible test-integration test-bench test-e2e)

# Help lists sections and targets in this order.
include $(patsubst %,hack/make/%.mk,build demo cluster images unit local integration e2e recipes chaos bench fuzz release generate verify tools)
