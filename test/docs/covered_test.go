// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

// covered are the targets of make that documents name and no document runs, with what
// runs them. Other targets are run where they stand.
var covered = map[string]string{
	"run":               "its manifests by TestGameServer in test/local",
	"test":              ".ci/run",
	"test-unit":         "make test",
	"test-local":        "make test",
	"test-integration":  "make test",
	"test-e2e":          "make test",
	"test-docs":         "make test",
	"test-reproducible": "make test",
	"verify":            ".ci/run",
	"generate":          "make verify-generate",
	"lint":              "make verify",
	"fuzz":              "its targets, for less time, by make fuzz-short in make test",
	"bench":             "nothing: it measures, and takes the machine to itself",
	"demo":              "its parts: make install, the manifests by TestExamples in test/e2e, the story by the tests of hack/demo",
	"demo-down":         "make cluster-down, which is all it is",
	"cluster-up":        "make install in make test-e2e",
	"cluster-down":      "make test-e2e",
	"images":            "make install in make test-e2e",
	"sbom":              "make images",
	"install":           "make test-e2e, and TestCommands after each document that changes the installation",
	"example-images":    "make test-e2e",
}
