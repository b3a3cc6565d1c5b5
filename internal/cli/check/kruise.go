// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
)

const (
	// kruiseLease is the name of the lease of OpenKruise's manager.
	kruiseLease = "kruise-manager"
	// markerGate is the feature gate of OpenKruise's controllers of markers. It is on by default.
	markerGate = "PodProbeMarkerGate"
	// markerWebhook is the webhook of OpenKruise that validates markers. It rejects all writes if
	// the gate is off.
	markerWebhook = "vpodprobemarker.kb.io"
)

// openKruise checks that OpenKruise does not handle the same objects.
func (f *Facts) openKruise() []Result {
	const name = "openkruise"
	if err := firstError(f.Kruise.Lease.Err, f.Kruise.Manager.Err, f.Kruise.Webhook.Err); err != nil {
		return []Result{unreadable(name, err)}
	}
	holder, _, leads := diagnosis.Leader(f.Kruise.Lease.Value, f.Now)
	if !leads {
		return []Result{ok(name, "no manager of OpenKruise is running")}
	}
	var results []Result
	off := GateIsOff(f.Kruise.Manager.Value, markerGate)
	switch {
	case !off:
		results = append(results, Result{
			Check: name, Verdict: Failed,
			Evidence: fmt.Sprintf("OpenKruise's manager %s is running with the gate %s: both write the same plans and marks", holder, markerGate),
			Fix:      fmt.Sprintf("helm upgrade kruise openkruise/kruise --reuse-values --set featureGates='%s=false' (docs/migrate-from-openkruise.md)", markerGate),
		})
	case slices.ContainsFunc(webhooksOf(f.Kruise.Webhook.Value), func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == markerWebhook }):
		results = append(results, Result{
			Check: name, Verdict: Failed,
			Evidence: fmt.Sprintf("the webhook %s of OpenKruise rejects every write of a marker, because %s is off", markerWebhook, markerGate),
			Fix:      "remove the webhook: step 3 of docs/migrate-from-openkruise.md",
		})
	default:
		results = append(results, ok(name, "OpenKruise's manager %s is running and leaves markers to Seamark", holder))
	}
	if f.deployment(workloadsName) != nil {
		results = append(results, Result{
			Check: name + "-workloads", Verdict: Failed,
			Evidence: "seamark-workloads does nothing while OpenKruise's manager " + holder + " is running",
			Fix:      "kubectl -n " + kruiseNamespace + " scale deployment kruise-controller-manager --replicas 0 (docs/migrate-workloads.md)",
		})
	}
	return results
}

func webhooksOf(w *admissionregistrationv1.ValidatingWebhookConfiguration) []admissionregistrationv1.ValidatingWebhook {
	if w == nil {
		return nil
	}
	return w.Webhooks
}

// GateIsOff reports whether a flag of OpenKruise's manager sets the feature gate to false.
func GateIsOff(manager *appsv1.Deployment, gate string) bool {
	if manager == nil {
		return false
	}
	for _, container := range manager.Spec.Template.Spec.Containers {
		for _, arg := range slices.Concat(container.Command, container.Args) {
			gates, isGates := strings.CutPrefix(strings.TrimLeft(arg, "-"), "feature-gates=")
			if isGates && slices.Contains(strings.Split(gates, ","), gate+"=false") {
				return true
			}
		}
	}
	return false
}
