// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/check"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestDaemonSets checks that the CRD and the permissions of DaemonSets are required only if their controller is enabled,
// and those of BroadcastJobs.
func TestDaemonSets(t *testing.T) {
	const enabled = "controllers: {daemonSet: {enabled: true}}"
	lacks := func(p check.Permission) bool { return !strings.HasPrefix(p.Attributes.Resource, "daemonsets") }
	for name, test := range map[string]struct {
		configuration string
		installed     bool
		allowed       func(check.Permission) bool
		want          string
	}{
		"enabled":  {enabled, true, func(check.Permission) bool { return true }, ""},
		"disabled": {"controllers: {cloneSet: {enabled: true}}", false, lacks, ""},
		"enabled, without permissions and CRD": {
			enabled, false, lacks,
			"failed crd/daemonsets.apps.kruise.io: the CRD does not exist\n" +
				"  kubectl apply --server-side --force-conflicts -f config/crd/daemonsets/apps.kruise.io_daemonsets.yaml\n" +
				"failed permissions/seamark-workloads: the account lacks 5 of 40 permissions: " +
				"get daemonsets.apps.kruise.io, list daemonsets.apps.kruise.io, watch daemonsets.apps.kruise.io and 2 more\n" +
				"  install the roles of this version: helm upgrade, or kubectl apply --server-side -k config/daemonsets\n",
		},
		"BroadcastJobs without permissions and CRD": {
			"controllers: {broadcastJob: {enabled: true}}", false,
			func(p check.Permission) bool { return !strings.HasPrefix(p.Attributes.Resource, "broadcastjobs") },
			"failed crd/broadcastjobs.apps.kruise.io: the CRD does not exist\n" +
				"  kubectl apply --server-side --force-conflicts -f config/crd/broadcastjobs/apps.kruise.io_broadcastjobs.yaml\n" +
				"failed permissions/seamark-workloads: the account lacks 6 of 41 permissions: " +
				"get broadcastjobs.apps.kruise.io, list broadcastjobs.apps.kruise.io, watch broadcastjobs.apps.kruise.io and 3 more\n" +
				"  install the roles of this version: helm upgrade, or kubectl apply --server-side -k config/broadcastjobs\n",
		},
		"with AdvancedCronJobs": {
			"controllers: {daemonSet: {enabled: true}, advancedCronJob: {enabled: true}}", true,
			func(p check.Permission) bool { return p.Attributes.Resource != "jobs" },
			"failed crd/advancedcronjobs.apps.kruise.io: the CRD does not exist\n" +
				"  kubectl apply --server-side --force-conflicts -f config/crd/cronjobs/apps.kruise.io_advancedcronjobs.yaml\n" +
				"failed permissions/seamark-workloads: the account lacks 5 of 55 permissions: " +
				"get jobs.batch, list jobs.batch, watch jobs.batch and 2 more\n" +
				"  install the roles of this version: helm upgrade, or kubectl apply --server-side -k config/cronjobs\n" +
				"failed policy/seamark-workloads-jobs: the policy does not exist: seamark-workloads could create and delete all Jobs\n" +
				"  helm upgrade, or kubectl apply --server-side -k config/cronjobs\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			runWorkloads(t, f, test.configuration)
			if test.installed {
				f.CRDs.Value = append(f.CRDs.Value, definition(t, "daemonsets.apps.kruise.io"))
			}
			for _, name := range []string{"seamark-workloads-pods", "seamark-workloads-objects", "seamark-workloads-grants"} {
				p, b := policy(name, "Deny")
				f.Policies.Value, f.Bindings.Value = append(f.Policies.Value, p), append(f.Bindings.Value, b)
			}
			allow(t, f, test.allowed)
			expect.Equal(t, "results", test.want, lines(check.Run(f), false))
		})
	}
}
