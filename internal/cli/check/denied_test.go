// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/internal/cli/check"
)

// TestNothingReadable checks that facts that cannot be read never lead to a verdict.
func TestNothingReadable(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	f := &check.Facts{Now: now, Namespace: "seamark-system"}
	f.Server.Err, f.CRDs.Err, f.Deployments.Err, f.DaemonSets.Err, f.Pods.Err = denied, denied, denied, denied, denied
	f.Leases.Err, f.Nodes.Err, f.Policies.Err, f.Bindings.Err, f.Webhook.Err = denied, denied, denied, denied, denied
	f.Access.Err, f.Plans.Err, f.Reports.Err, f.Markers.Err = denied, denied, denied, denied
	f.Kruise.Lease.Err = denied
	results := check.Run(f)
	for _, r := range results {
		if r.Verdict != check.Unknown || !r.Denied {
			t.Errorf("%s is %s: %s, want unknown and denied", r.Check, r.Verdict, r.Evidence)
		}
	}
	if worst, denied := check.Worst(results); worst != check.Unknown || !denied {
		t.Errorf("Worst() = %s, %t, want unknown, true", worst, denied)
	}
}
