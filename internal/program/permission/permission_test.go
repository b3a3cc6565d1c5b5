// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package permission_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMissing(t *testing.T) {
	for text, test := range map[string]struct {
		missing permission.Missing
		fix     string
	}{
		"resource probereports.seamark.dev is not installed in the cluster": {
			permission.Missing{Resource: permission.Reports}, "install Seamark in the cluster",
		},
		"no permission to list pods in namespace games": {
			permission.Missing{Resource: permission.Pods, Verb: "list", Namespace: "games"},
			"ask for: kubectl create rolebinding seamark-view -n games --clusterrole=view --user=USER",
		},
		"no permission to watch podprobemarkers.apps.kruise.io in the cluster": {
			permission.Missing{Resource: permission.Markers, Verb: "watch"},
			"use a namespace that you have access to (-n), or ask for: kubectl create clusterrolebinding seamark-view --clusterrole=view --user=USER",
		},
		"no permission to get nodes in the cluster": {
			permission.Missing{Resource: permission.Nodes, Verb: "get"},
			"ask for: kubectl create clusterrolebinding seamark-view-states --clusterrole=seamark-view-states --user=USER",
		},
		"no permission to list sidecarsets.apps.kruise.io in the cluster": {
			permission.Missing{Resource: "sidecarsets.apps.kruise.io", Verb: "list"},
			"ask for: kubectl create clusterrolebinding seamark-view --clusterrole=view --user=USER",
		},
		"no permission to patch sidecarsets.apps.kruise.io in the cluster": {
			permission.Missing{Resource: "sidecarsets.apps.kruise.io", Verb: "patch"},
			"ask for: kubectl create clusterrolebinding seamark-sidecarsets-edit --clusterrole=seamark-sidecarsets-edit --user=USER",
		},
		"no permission to create pods/exec in namespace games": {
			permission.Missing{Resource: permission.Exec, Verb: "create", Namespace: "games"},
			"ask for: kubectl create role seamark-test -n games --verb=get,create --resource=pods/exec,pods/portforward; " +
				"kubectl create rolebinding seamark-test -n games --role=seamark-test --user=USER",
		},
	} {
		expect.Equal(t, "String()", text, test.missing.String())
		expect.Equal(t, fmt.Sprintf("Fix() of %q", text), test.fix, test.missing.Fix())
	}
}

// The name of a user may contain anything that the API server accepts.
func TestSubject(t *testing.T) {
	for user, want := range map[string]string{
		"":                               "--user=USER",
		"system:anonymous":               "--user=USER",
		"ann@example.com":                "--user=ann@example.com",
		"a b; rm -rf '~'":                `'--user=a b; rm -rf '\''~'\'''`,
		"$(id)":                          "'--user=$(id)'",
		"system:serviceaccount:games:ci": "--serviceaccount=games:ci",
		"system:node:worker-1":           "--user=system:node:worker-1",
		strings.Repeat("a", 254):         "--user=USER",
		texttest.Hostile:                 "--user=USER",
		"two\nlines":                     "--user=USER",
	} {
		missing := permission.Missing{Resource: permission.Nodes, Verb: "get", User: user}
		expect.Equal(t, fmt.Sprintf("command for user %q", user),
			"ask for: kubectl create clusterrolebinding seamark-view-states --clusterrole=seamark-view-states "+want, missing.Fix())
	}
}
