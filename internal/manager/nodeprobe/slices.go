// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/logging"
)

// Slices requests ProbeReports of agents, and deletes the slices of nodes, as apply.Plans does.
type Slices interface {
	// Restore asks the agent of the node to restore its ProbeReports.
	Restore(ctx context.Context, npp *v1alpha1.NodePodProbe, value string) error
	// DeleteReports deletes the ProbeReports of the node, and DeletePlans its ProbePlans.
	DeleteReports(ctx context.Context, node string) error
	DeletePlans(ctx context.Context, node string) error
}

// sliceEvents returns a handler that touches a node when another client than its agent changes
// or deletes its ProbeReports, and when there is one of a node without an agent. It ignores the
// reports of agents.
func (r *Reconciler) sliceEvents() handler.TypedEventHandler[*seamarkv1alpha1.ProbeReport, reconcile.Request] {
	return controllers.Changes(func(ctx context.Context, q controllers.Queue, before, after *seamarkv1alpha1.ProbeReport, _ bool) {
		switch {
		case after == nil:
			if len(before.Pods) > 0 {
				r.lose(q, before.NodeName, deletion(before))
			}
		case podview.ChangedByOthers(after) &&
			(before == nil || !podview.ChangedByOthers(before) || !equality.Semantic.DeepEqual(before.Pods, after.Pods)):
			r.lose(q, after.NodeName, change(after))
		case before == nil && r.lacksAgent(ctx, after.NodeName):
			r.touch(q, after.NodeName, afterPod())
		case before != nil && len(before.Pods) > 0 && len(after.Pods) == 0:
			r.lose(q, after.NodeName, removal(before, after))
		}
	})
}

func (r *Reconciler) lose(q controllers.Queue, node string, lost loss) {
	r.losses.Update(node, func(known *loss) bool {
		*known = known.join(lost)
		return true
	})
	r.touch(q, node, afterPod())
}

// lacksAgent reports whether the node has no agent, or is not in the cache.
func (r *Reconciler) lacksAgent(ctx context.Context, name string) bool {
	node, err := gather.GetNode(ctx, r.Reader.Client, name)
	return err != nil || node == nil || !serverless.HasAgent(node.Labels)
}

// restore asks the agent to restore its ProbeReports if one was lost since it was last asked. It
// does not ask while the states are those of OpenKruise in the status. If the NodePodProbe is
// gone, the loss is remembered until there is another one.
func (r *Reconciler) restore(ctx context.Context, npp *v1alpha1.NodePodProbe) error {
	if npp == nil || npp.DeletionTimestamp != nil {
		return nil
	}
	if err := r.search(ctx, npp); err != nil {
		return err
	}
	lost, found := r.losses.Get(npp.Name)
	if !found {
		return nil
	}
	whole, err := r.Reader.NodePlan(ctx, npp.Name)
	if err != nil || whole == nil {
		return err
	}
	asked := npp.Annotations[v1alpha1.RestoreReportsAnnotationKey] == lost.value
	if !asked && lost.matters(whole) && !mark.InStatus(npp) {
		err := r.Slices.Restore(ctx, npp, lost.value)
		switch {
		case errors.Is(err, apply.ErrGone):
			// The deletion enqueues the node again.
			return nil
		case err != nil:
			return err
		}
		log.FromContext(ctx).V(logging.Writes).Info("Asked the agent to restore its ProbeReports", "lost", lost.value)
	}
	// There may have been another loss meanwhile.
	r.losses.Update(npp.Name, func(known *loss) bool { return known.value != lost.value })
	return nil
}

// search looks once for pods that have marks but no report. Their ProbeReport was lost while no manager led; later losses
// have events.
func (r *Reconciler) search(ctx context.Context, npp *v1alpha1.NodePodProbe) error {
	if _, searched := r.searched.Get(npp.Name); searched {
		return nil
	}
	report, err := r.Reader.Report(ctx, npp.Name)
	if err != nil {
		return err
	}
	pods, err := r.Reader.NodePods(ctx, npp.Name)
	if err != nil {
		return err
	}
	var lost []seamarkv1alpha1.PodReport
	for _, pod := range pods {
		if mark.Entry(pod.ManagedFields) != nil && !report.OfPod(pod.UID).Reported {
			lost = append(lost, seamarkv1alpha1.PodReport{UID: string(pod.UID)})
		}
	}
	if len(lost) > 0 {
		r.losses.Update(npp.Name, func(known *loss) bool {
			*known = known.join(unreported(npp, lost))
			return true
		})
	}
	r.searched.Set(npp.Name, true)
	return nil
}

// deleteSlices deletes the ProbePlans and ProbeReports of a node that has no agent.
func (r *Reconciler) deleteSlices(ctx context.Context, node string) error {
	plans, err := r.Reader.ProbePlans(ctx, node)
	if err != nil {
		return err
	}
	reports, err := r.Reader.Slices(ctx, node)
	if err != nil {
		return err
	}
	var failed []error
	if len(plans) > 0 {
		failed = append(failed, r.Slices.DeletePlans(ctx, node))
	}
	if len(reports) > 0 {
		failed = append(failed, r.Slices.DeleteReports(ctx, node))
	}
	if err := errors.Join(failed...); err != nil || len(failed) == 0 {
		return err
	}
	log.FromContext(ctx).V(logging.Writes).Info("Deleted the slices of a node without an agent", "plans", len(plans), "reports", len(reports))
	return nil
}
