// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/test/process"
)

// TestLinkedPackages checks that the agent, which runs on every node, does not link packages that
// cost several MiB of memory each.
func TestLinkedPackages(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags=grpcnotrace", ".")
	linked := strings.Fields(process.Output(t, command))
	if !slices.Contains(linked, "k8s.io/client-go/rest") {
		t.Fatal("the agent does not link client-go: is this the list of its packages?")
	}
	for name, reason := range map[string]string{
		"k8s.io/client-go/kubernetes/scheme":        "registers the types of all API groups",
		"k8s.io/client-go/kubernetes":               "links the clients of all API groups",
		"k8s.io/client-go/discovery":                "links OpenAPI",
		"k8s.io/kube-openapi/pkg/util/proto":        "links OpenAPI",
		"k8s.io/component-base/metrics":             "links the metrics and traces of Kubernetes",
		"sigs.k8s.io/controller-runtime/pkg/client": "registers the types of all API groups",
		"github.com/google/cel-go/cel":              "links a parser",
		"golang.org/x/net/trace":                    "links html/template, so the linker keeps all exported methods",
		"html/template":                             "makes the linker keep all exported methods",
	} {
		if slices.Contains(linked, name) {
			t.Errorf("the agent links %s, which %s: run `go mod why` for the importer", name, reason)
		}
	}
}
