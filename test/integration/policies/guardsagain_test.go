// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestGuardsInstalledAgain removes what an uninstallation removes and installs it again: guards that are created then protect
// their pods. It is not parallel, because the other tests need the policies.
func TestGuardsInstalledAgain(t *testing.T) {
	before := newGuards(t)
	pod := before.pod(t, corev1.PodRunning)
	for _, object := range env.Manifests(t, []string{"config/policies/guards.yaml"}) {
		if object.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			expect.NoError(t, before.Delete(t.Context(), object))
		}
	}
	eventually(t, "the policies are removed", func(ctx context.Context) error {
		return before.Delete(ctx, pod, client.DryRunAll)
	})
	newGuards(t)
}
