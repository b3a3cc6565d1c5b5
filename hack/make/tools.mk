# What targets and tests need besides the code: tools that are built, and packages that are installed.

.PHONY: tools
tools:
	@$(call PROGRESS,building helm and kustomize,go -C hack/tools build -ldflags='-s -w' -o $(BIN)/ \
		helm.sh/helm/v4/cmd/helm sigs.k8s.io/kustomize/kustomize/v5)

# promtool comes from the Debian package prometheus, which is unpacked and not installed: it would start a server.
$(BIN)/promtool:
	@mkdir -p $(BIN); if program=$$(command -v promtool); then ln -s "$$program" $@; exit; fi; \
	command -v apt-get >/dev/null || { echo 'no promtool and no apt-get: install promtool' >&2; exit 1; }; \
	echo 'unpacking promtool, which the tests of the alerts need'; \
	folder=$$(mktemp -d); trap 'rm -rf $$folder' EXIT; cd $$folder; \
	download() { apt-get -qq -o APT::Sandbox::User=root download prometheus; }; \
	download 2>/dev/null || { apt-get update -qq; download; }; \
	dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xf - ./usr/bin/promtool; mv usr/bin/promtool $@

# $(call INSTALL,program,packages,what needs it) installs a missing program with apt-get.
INSTALL = command -v $(1) >/dev/null || { echo 'installing $(1), which $(3)'; \
	command -v apt-get >/dev/null || { echo 'no $(1) and no apt-get: install $(1)' >&2; exit 1; }; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(2) >/dev/null; }

.PHONY: compiler
compiler:
	@$(call INSTALL,$(firstword $(shell go env CC)),gcc libc6-dev,the race detector needs)

.PHONY: chromium
chromium:
	@$(call INSTALL,chromium,chromium,the tests of the web page run)

.PHONY: jq
jq:
	@$(call INSTALL,jq,jq,the commands of the documents use)
