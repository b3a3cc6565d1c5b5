# Tests of the examples, the web page and the images.

##@ Tests

# Arguments of go test in `make test-ui`.
UI_ARGS ?=

.PHONY: test-local
test-local: jq build ## Run the examples as local processes and check their output. Needs no cluster and no root.
	go test -count=1 ./examples/... ./test/local/... ./test/docs/...

.PHONY: test-ui
test-ui: chromium ## Test the web page in Chromium. UI_ARGS are arguments of go test, for example -run TestArrows.
	go -C test/ui test -count=1 $(UI_ARGS) .

# The images are built first, so that the test finds compiled packages in the cache.
.PHONY: test-reproducible
test-reproducible: images ## Build the images twice, in different folders, and compare the digests.
	go test -count=1 -v ./test/images/...
