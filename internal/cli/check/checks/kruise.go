// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/migrate/migration"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

const (
	// kruiseLease is the name of the lease of OpenKruise's manager.
	kruiseLease = planning.OpenKruiseLease
	// markerGate is the feature gate of OpenKruise's controllers of markers. It is on by default.
	markerGate = "PodProbeMarkerGate"
	// markerWebhook is the webhook of OpenKruise that validates markers. It rejects all writes if
	// the gate is off.
	markerWebhook = "vpodprobemarker.kb.io"
)

// openKruise checks that OpenKruise does not handle the same objects.
func (f *Facts) openKruise() []Result {
	const name = "openkruise"
	if err := firstError(f.Kruise.Lease.Err, f.Kruise.Manager.Err, f.Kruise.Webhook.Err, f.Kruise.Mutating.Err); err != nil {
		return unreadable(name, err)
	}
	holder, _, leads := diagnosis.Leader(f.Kruise.Lease.Value, f.Now)
	if !leads {
		return ok(name, "no manager of OpenKruise is running")
	}
	if !planning.IsOpenKruise(f.Kruise.Mutating.Value, kruiseNamespace) {
		return warning(name, "find out who renews the lease: kubectl -n "+kruiseNamespace+" get lease "+kruiseLease+" -o yaml",
			"%s holds the lease of OpenKruise's manager, but no webhook of %s has a Service of %s: Seamark does not regard it as OpenKruise",
			holder, planning.OpenKruiseWebhook, kruiseNamespace)
	}
	var results []Result
	switch {
	case f.Kruise.Manager.Value == nil || !migration.ManagerOf(f.Kruise.Manager.Value).Disables(markerGate):
		results = failed(name,
			fmt.Sprintf("helm upgrade kruise openkruise/kruise --reuse-values --set featureGates='%s=false' (docs/migrate-from-openkruise.md)", markerGate),
			"OpenKruise's manager %s is running with the gate %s: both write the same plans and marks", holder, markerGate)
	case slices.ContainsFunc(webhooksOf(f.Kruise.Webhook.Value), func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == markerWebhook }):
		results = failed(name, "remove the webhook: step 3 of docs/migrate-from-openkruise.md",
			"the webhook %s of OpenKruise rejects every write of a marker, because %s is off", markerWebhook, markerGate)
	default:
		results = ok(name, "OpenKruise's manager %s is running and leaves markers to Seamark", holder)
	}
	if f.hasWorkloads() {
		results = append(results, failed(name+"-workloads",
			"kubectl -n "+kruiseNamespace+" scale deployment kruise-controller-manager --replicas 0 (docs/migrate-from-openkruise.md#migrate-workloads)",
			"seamark-workloads does nothing while OpenKruise's manager %s is running", holder)...)
	}
	return results
}

// lostFields reports the markers that were applied with fields that the API server does not store,
// because the CRD is that of OpenKruise. It knows only of those that kubectl
// applied on the client's side, which keeps what was applied.
func (f *Facts) lostFields() []Result {
	var results []Result
	for i := range f.Markers.Value {
		marker, applied := &f.Markers.Value[i], &v1alpha1.PodProbeMarker{}
		if json.Unmarshal([]byte(marker.Annotations[corev1.LastAppliedConfigAnnotation]), applied) != nil {
			continue
		}
		stored := migration.PrunedFields(marker.Spec.Probes)
		lost := slices.DeleteFunc(migration.PrunedFields(applied.Spec.Probes), func(field string) bool { return slices.Contains(stored, field) })
		if len(lost) > 0 {
			results = append(results, warning("marker/"+marker.Namespace+"/"+marker.Name,
				"kubectl apply --server-side --force-conflicts -f config/crd/bases/apps.kruise.io_podprobemarkers.yaml, and apply the marker again",
				"it was applied with %s, which the API server does not store: the CRD does not have it", strings.Join(lost, ", "))...)
		}
	}
	return results
}

func webhooksOf(w *admissionregistrationv1.ValidatingWebhookConfiguration) []admissionregistrationv1.ValidatingWebhook {
	if w == nil {
		return nil
	}
	return w.Webhooks
}
