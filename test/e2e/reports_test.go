// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// settleReports is the time after which a write that a restart or a repair causes has been made.
const settleReports = 5 * time.Second

// TestReports follows the ProbeReports of more pods than one has. It counts writes, so no other
// test runs meanwhile.
func TestReports(t *testing.T) {
	s := newSuite(t)
	f := newFleet(s, report.MaxPods+2)
	s.Eventually("all pods are reported", s.inSlices(appsv1alpha1.ProbeSucceeded, f.pods...))
	f.haveSlices()
	f.columns()
	f.oneWritePerTransition()
	f.restartWritesNothing()
	f.deletedSliceIsRestored()
	f.editedSliceIsRepaired()
	f.flip()
	f.settled()
}

// haveSlices checks the slices of the pods: their size, their owner, and the plan's status.
func (f *fleet) haveSlices() {
	f.Helper()
	found, err := f.slicesOf(f.Context())
	cluster.Must(f, err)
	all := map[string]seamarkv1alpha1.ProbeReport{}
	for _, pod := range f.pods {
		all[found[pod][0].Name] = found[pod][0]
	}
	if len(all) < 2 {
		f.Errorf("%d pods are in %d slices, want at least 2", len(f.pods), len(all))
	}
	for name, slice := range all {
		if n := len(own(slice.Pods, f.Namespace)); n > report.MaxPods {
			f.Errorf("%s has %d pods, want at most %d", name, n, report.MaxPods)
		}
		node, plan := &corev1.Node{}, &appsv1alpha1.NodePodProbe{}
		cluster.Must(f, f.Client.Get(f.Context(), ctrl.ObjectKey{Name: slice.NodeName}, node))
		cluster.Must(f, f.Client.Get(f.Context(), ctrl.ObjectKey{Name: slice.NodeName}, plan))
		if !strings.HasPrefix(name, node.Name+".") || !plan.Status.ProbeReports {
			f.Errorf("%s of node %s: probeReports %t of its plan, want true", name, node.Name, plan.Status.ProbeReports)
		}
		// The agent copies the owners of the plan, and OpenKruise's plans have none.
		if owners := slice.OwnerReferences; len(plan.OwnerReferences) > 0 && (len(owners) != 1 || owners[0].UID != node.UID) {
			f.Errorf("%s has the owners %v, want node %s", name, owners, node.Name)
		}
	}
}

// columns checks the output of kubectl.
func (f *fleet) columns() {
	f.Helper()
	_, slice, err := f.reportOf(f.Context(), f.pods[0])
	cluster.Must(f, err)
	lines := strings.Split(f.Kubectl("get", "probereports", "--field-selector", "nodeName="+slice.NodeName), "\n")
	if header := strings.Fields(lines[0]); !slices.Contains(header, "NODE") || !slices.Contains(header, "AGE") {
		f.Errorf("kubectl get probereports has the columns %q", lines[0])
	}
	if !slices.ContainsFunc(lines[1:], func(line string) bool {
		columns := strings.Fields(line)
		return len(columns) >= 3 && columns[0] == slice.Name && columns[1] == slice.NodeName
	}) {
		f.Errorf("kubectl get probereports does not print %s of node %s:\n%s", slice.Name, slice.NodeName, strings.Join(lines, "\n"))
	}
	if out := f.Kubectl("get", "probereports", "--field-selector", "nodeName=none"); !strings.Contains(out, "No resources found") {
		f.Errorf("kubectl get probereports of a node without any prints %s", out)
	}
}

// oneWritePerTransition changes one answer at a time.
func (f *fleet) oneWritePerTransition() {
	f.Helper()
	w, mirrored := f.watchWrites(), f.mirrored()
	for _, name := range []string{f.pods[0], f.pods[len(f.pods)-1]} {
		_, slice, err := f.reportOf(f.Context(), name)
		cluster.Must(f, err)
		f.good[name] = false
		f.exec(name, "rm /tmp/ok")
		f.settled()
		<-time.After(settleReports)
		written, statuses := f.take(w)
		if want := []string{"MODIFIED " + slice.Name}; !slices.Equal(written, want) {
			f.Errorf("a transition of pod %s caused the writes %q, want %q", name, written, want)
		}
		if !mirrored && len(statuses) > 0 {
			f.Errorf("a transition of pod %s wrote the status of %q", name, statuses)
		}
	}
}

// restartWritesNothing replaces all agents while no state changes.
func (f *fleet) restartWritesNothing() {
	f.Helper()
	before, w := f.markedAt(), f.watchWrites()
	f.kill("seamark-agent")
	f.Eventually("an agent runs again", func(context.Context) error {
		if len(processes(f, f.program("seamark-agent"))) == 0 {
			return errors.New("no process")
		}
		return nil
	})
	f.systemReady("agent")
	<-time.After(settleReports)
	if written, statuses := f.take(w); len(written)+len(statuses) > 0 {
		f.Errorf("a restart of the agents wrote the reports %q and the statuses of %q", written, statuses)
	}
	f.notMarked(before)
}

// deletedSliceIsRestored deletes one slice, and then all slices of the node.
func (f *fleet) deletedSliceIsRestored() {
	f.Helper()
	before, times := f.reports(), f.markedAt()
	_, slice, err := f.reportOf(f.Context(), f.pods[0])
	cluster.Must(f, err)
	cluster.Must(f, f.Client.Delete(f.Context(), slice))
	f.restored("the deleted slice is restored", before)
	f.Kubectl("delete", "probereports", "--all", "--wait=false")
	f.restored("all deleted slices are restored", before)
	<-time.After(settleReports)
	f.restored("the slices stay", before)
	f.notMarked(times)

	name := f.pods[1]
	f.good[name] = !f.good[name]
	f.exec(name, map[bool]string{true: "touch /tmp/ok", false: "rm /tmp/ok"}[f.good[name]])
	f.settled()
}

// markedAt returns when Seamark wrote each pod. Other programs, such as the kubelet, write pods too.
func (f *fleet) markedAt() map[string]string {
	f.Helper()
	times := map[string]string{}
	for _, name := range f.pods {
		if entry := mark.Entry(f.getPod(name).ManagedFields); entry != nil {
			times[name] = entry.Time.String()
		}
	}
	return times
}

// notMarked checks that Seamark has written no pod since before.
func (f *fleet) notMarked(before map[string]string) {
	f.Helper()
	for name, now := range f.markedAt() {
		if now != before[name] {
			f.Errorf("the marks of pod %s were written at %s although no state changed, before at %s", name, now, before[name])
		}
	}
}

// reports returns the contents of the slices.
func (f *fleet) reports() map[string]string {
	f.Helper()
	all, err := f.contents(f.Context())
	cluster.Must(f, err)
	return all
}

// editedSliceIsRepaired writes slices as a user: one without a pod, whose marks stay, and one with
// a wrong state.
func (f *fleet) editedSliceIsRepaired() {
	f.Helper()
	before, times := f.reports(), f.markedAt()
	name := f.pods[0]
	f.editSlice(name, func(slice *seamarkv1alpha1.ProbeReport) {
		slice.Pods = slices.DeleteFunc(slice.Pods, func(p seamarkv1alpha1.PodReport) bool { return p.Namespace == f.Namespace && p.Name == name })
	})
	f.restored("the missing entry is repaired", before)
	<-time.After(settleReports)
	f.notMarked(times)

	f.editSlice(name, func(slice *seamarkv1alpha1.ProbeReport) {
		for i, p := range slice.Pods {
			if p.Namespace == f.Namespace && p.Name == name {
				slice.Pods[i].Probes[0].State = appsv1alpha1.ProbeUnknown
			}
		}
	})
	f.restored("the wrong state is repaired", before)
	f.settled()
}

// editSlice writes the slice of the pod as another field manager than the agent.
func (f *fleet) editSlice(pod string, change func(*seamarkv1alpha1.ProbeReport)) {
	f.Helper()
	_, slice, err := f.reportOf(f.Context(), pod)
	cluster.Must(f, err)
	base := slice.DeepCopy()
	change(slice)
	cluster.Must(f, f.Client.Patch(f.Context(), slice, ctrl.MergeFrom(base), ctrl.FieldOwner("kubectl-edit")))
}

// TestReportsOfNodesWithoutAgents creates slices that no agent looks after.
func TestReportsOfNodesWithoutAgents(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	virtual := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "virtual-" + s.Namespace, Labels: map[string]string{appsv1alpha1.NodeTypeLabel: appsv1alpha1.NodeTypeVirtualKubelet},
	}}
	cluster.Must(t, s.Client.Create(t.Context(), virtual))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cluster.Timeout)
		defer cancel()
		if err := ctrl.IgnoreNotFound(s.Client.Delete(ctx, virtual)); err != nil {
			t.Errorf("delete node %s: %v", virtual.Name, err)
		}
	})
	for _, node := range []string{"gone-" + s.Namespace, virtual.Name} {
		slice := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: node + ".0"}, NodeName: node}
		cluster.Must(t, s.Client.Create(t.Context(), slice))
		s.Eventually("slice "+slice.Name+" is deleted", func(ctx context.Context) error {
			err := s.Client.Get(ctx, ctrl.ObjectKeyFromObject(slice), &seamarkv1alpha1.ProbeReport{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it exists: %w", err)
		})
	}
}
