// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/check/inspect"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestGuardsInstalledAgain removes what an uninstallation removes and installs it again: guards that are created then protect
// their pods. The facts of seamark check tell both states. It is not parallel, because the other tests need the policies.
func TestGuardsInstalledAgain(t *testing.T) {
	before := newGuards(t)
	pod := before.pod(t, corev1.PodRunning)
	for _, object := range env.Manifests(t, []string{"config/policies/guards.yaml"}) {
		if object.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			expect.NoError(t, before.Delete(t.Context(), object))
			continue
		}
		// Whoever installs with kubectl what Helm has kept has no conflicts.
		expect.NoError(t, before.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl")))
	}
	eventually(t, "the policies are removed", func(ctx context.Context) error {
		return before.Delete(ctx, pod, client.DryRunAll)
	})
	checkTrial(t, false)
	newGuards(t)
	checkTrial(t, true)
}

// checkTrial checks whether the dry run of seamark check is refused.
func checkTrial(t *testing.T, refused bool) {
	t.Helper()
	reader, err := client.NewWithWatch(server.Config, client.Options{Scheme: server.Client.Scheme()})
	expect.NoError(t, err)
	facts, err := inspect.Facts(t.Context(), cluster.Connection{Config: server.Config, Client: reader}, env.SystemNamespace, time.Now())
	expect.NoError(t, err)
	expect.NoError(t, facts.Guards.Trial.Err)
	if trial := facts.Guards.Trial.Value; trial == nil || trial.Refused != refused {
		t.Errorf("the dry run of a deletion: %+v, want refused: %t", trial, refused)
	}
}
