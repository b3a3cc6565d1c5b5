// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

// covered maps the make targets that documents show but do not run to what runs them. All
// other targets are run as part of the document.
var covered = map[string]string{
	"run":               "TestGameServer in test/local, which runs the same manifests",
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
	"fuzz":              "make fuzz-short in make test, for less time and without packages that link client-go's typed clients, whose seeds are run",
	"bench":             "nothing: it measures, and needs the whole machine",
	"chaos":             "make test-e2e, with a short selection of the faults",
	"demo":              "make install, TestExamples in test/e2e, and the tests of hack/demo",
	"demo-roles":        "make install, make example-images, TestSwitchesOfThePrimary in test/e2e/workloads, and the tests of hack/demo",
	"demo-down":         "make cluster-down, which is all it does",
	"cluster-up":        "make install in make test-e2e",
	"cluster-down":      "make test-e2e",
	"images":            "make install in make test-e2e",
	"sbom":              "make images",
	"install":           "make test-e2e, and TestCommands after each document that changes the installation",
	"example-images":    "make test-e2e",
	"recipe-images":     "make test-recipes",
	"test-recipes":      "the job recipes of nightly.yaml, and of pull-request.yaml for recipes that change",
}
