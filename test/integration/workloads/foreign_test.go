// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// foreign creates objects of a hostile namespace that name sets of others as their controller.
type foreign struct {
	*world
	hostile string
	objects []client.Object
}

// owned returns the metadata of an object. The garbage collector leaves objects alone whose owner has a version that is
// not served.
func (f *foreign) owned(name, kind string, set client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: f.hostile, Name: name, Labels: map[string]string{"app": set.GetName()},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps.kruise.io/v9", Kind: kind, Name: set.GetName(), UID: set.GetUID(), Controller: new(true),
		}},
	}
}

func (f *foreign) create(object client.Object) {
	f.Helper()
	f.Create(object)
	f.objects = append(f.objects, object)
}

// pods creates pods on the node that look as those of the set.
func (f *foreign) pods(kind string, set client.Object, node string, names ...string) {
	f.Helper()
	for _, name := range names {
		f.create(&corev1.Pod{ObjectMeta: f.owned(name, kind, set), Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "evil:1"}},
		}})
	}
}

// unchanged checks that nothing foreign has been written.
func (f *foreign) unchanged() {
	f.Helper()
	for _, object := range f.objects {
		before := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // A copy has the same type.
		f.Get(object)
		if diff := cmp.Diff(before.GetResourceVersion(), object.GetResourceVersion()); diff != "" {
			f.Errorf("%T %s has changed: %s", object, object.GetName(), diff)
		}
	}
}

// revision returns a revision of the same name with a privileged container.
func (f *foreign) revision(like *appsv1.ControllerRevision, kind string, set client.Object, content string) *appsv1.ControllerRevision {
	revision := &appsv1.ControllerRevision{ObjectMeta: f.owned(like.Name, kind, set), Revision: 99, Data: runtime.RawExtension{Raw: []byte(content)}}
	for key, value := range like.Labels {
		revision.Labels[key] = value
	}
	return revision
}

// victims are an object of each kind in a namespace, on one node.
type victims struct {
	web, canary *v1alpha1.CloneSet
	db          *v1beta1.StatefulSet
	daemon      *v1alpha1.DaemonSet
	broadcast   *v1alpha1.BroadcastJob
	cron        *v1alpha1.AdvancedCronJob
	sidecar     *v1alpha1.SidecarSet
}

func (w *world) victims() victims {
	w.Helper()
	in := func(name string) metav1.ObjectMeta { return w.Meta(name) }
	selector := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	}
	v := victims{web: w.cloneSet("web", 3), canary: w.cloneSet("canary", 2)}
	v.db = w.statefulSet("db", 1, func(set *v1beta1.StatefulSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claimSpec()}}
	})
	v.daemon = &v1alpha1.DaemonSet{
		ObjectMeta: in("daemon"), Spec: v1alpha1.DaemonSetSpec{Selector: selector("daemon"), Template: template("daemon", "image:1")},
	}
	v.broadcast = &v1alpha1.BroadcastJob{ObjectMeta: in("broadcast"), Spec: v1alpha1.BroadcastJobSpec{Template: template("broadcast", "image:1")}}
	v.broadcast.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	v.cron = &v1alpha1.AdvancedCronJob{ObjectMeta: in("cron"), Spec: v1alpha1.AdvancedCronJobSpec{
		Schedule: "@every 1s", ConcurrencyPolicy: v1alpha1.ReplaceConcurrent,
		Template: v1alpha1.CronJobTemplate{JobTemplate: &runtime.RawExtension{
			Raw: []byte(`{"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "image:1"}]}}}}`),
		}},
	}}
	v.sidecar = &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "sidecar"}, Spec: v1alpha1.SidecarSetSpec{
		Namespace: w.Namespace, Selector: selector("web"),
		Containers:        []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "logs", Image: "logs:2"}}},
		InjectionStrategy: v1alpha1.SidecarSetInjectionStrategy{Revision: &v1alpha1.SidecarSetInjectRevision{CustomVersion: new("evil")}},
	}}
	for _, object := range []client.Object{v.daemon, v.broadcast, v.cron, v.sidecar} {
		w.Create(object)
	}
	return v
}

func claimSpec() corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
}

// attack creates what a hostile namespace can do to the victims before the program runs.
func (f *foreign) attack(v *victims, node string) {
	f.Helper()
	f.pods("CloneSet", v.web, node, "web-a", "web-b", "web-c")
	f.pods("DaemonSet", v.daemon, node, "daemon-a")
	f.pods("BroadcastJob", v.broadcast, node, "broadcast-a")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: f.owned("data-db-0", "StatefulSet", v.db), Spec: claimSpec()}
	claim.Finalizers = []string{"example.com/hold"}
	f.create(claim)
	f.Delete(claim)
	f.Get(claim)
	f.create(&batchv1.Job{ObjectMeta: f.owned("cron-1", "AdvancedCronJob", v.cron), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "evil:1"}}},
	}}})
	content, err := history.Content(&v1alpha1.SidecarSet{Spec: v1alpha1.SidecarSetSpec{
		Containers: []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "logs", Image: "evil:1"}}},
	}})
	f.Must(err)
	f.create(f.revision(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "sidecar-evil", Labels: map[string]string{
		history.SetLabel: v.sidecar.Name, v1alpha1.SidecarSetCustomVersionLabel: "evil",
	}}}, "SidecarSet", v.sidecar, string(content)))
}

// TestNothingOfAHostileNamespaceBelongsToASet lets objects of another namespace name sets as their controller. The sets
// work as if they did not exist, and nothing foreign is deleted or changed.
func TestNothingOfAHostileNamespaceBelongsToASet(t *testing.T) {
	w := newWorldWithoutProgram(t, servers.Parallel(t))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	w.Create(node)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w.UpdateStatus(node)
	v := w.victims()
	t.Cleanup(func() { w.Must(w.Client.Delete(context.Background(), v.sidecar)) })
	f := &foreign{world: w, hostile: w.Env.Namespace(t)}
	f.attack(&v, node.Name)

	cfg := program.Install(t, w.Env, "config/daemonsets/rbac.yaml", "config/broadcastjobs/rbac.yaml",
		"config/cronjobs/rbac.yaml", "config/sidecarsets/rbac.yaml")
	program.Start(t, cfg, func(options *workloads.Options, enabled *configv1alpha1.WorkloadControllers) {
		options.InjectorURL = "https://localhost:1"
		for _, each := range []*configv1alpha1.WorkloadController{
			&enabled.DaemonSet, &enabled.BroadcastJob, &enabled.AdvancedCronJob, &enabled.SidecarSet,
		} {
			each.Enabled = new(true)
		}
	})
	w.settled(v.web, 3, "image:1")
	w.settled(v.canary, 2, "image:1")
	w.settled(v.db, 1, "image:1")
	w.Shows(v.daemon, "the DaemonSet runs on its node", func() error { return is(v.daemon.Status.NumberReady, 1) })
	w.Shows(v.broadcast, "the BroadcastJob runs on its node", func() error { return is(v.broadcast.Status.Active, 1) })
	w.Shows(v.cron, "the AdvancedCronJob runs one Job", func() error {
		return await.ErrorIf(len(v.cron.Status.Active) != 1 || v.cron.Status.Active[0].Namespace != w.Namespace, "%+v", v.cron.Status.Active)
	})
	w.Shows(v.sidecar, "the SidecarSet does not accept the revision", func() error {
		accepted := meta.FindStatusCondition(v.sidecar.Status.Conditions, v1alpha1.SidecarSetAccepted)
		if accepted == nil || accepted.Status != metav1.ConditionFalse || accepted.Reason != "RevisionNotFound" || v.sidecar.Status.InForce != nil {
			return fmt.Errorf("%+v", v.sidecar.Status)
		}
		return nil
	})
	w.keepsItsCanary(f, v.canary)
	f.unchanged()
	var copied appsv1.ControllerRevisionList
	w.Must(w.Client.List(t.Context(), &copied, client.InNamespace(env.SystemNamespace), client.MatchingLabels{history.SetLabel: v.sidecar.Name}))
	if len(copied.Items) > 0 {
		t.Errorf("%d revisions in the namespace of the program", len(copied.Items))
	}
}

// keepsItsCanary replaces a pod of the old revision while a foreign one has its name.
func (w *world) keepsItsCanary(f *foreign, set *v1alpha1.CloneSet) {
	w.Helper()
	var current appsv1.ControllerRevision
	w.Must(w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: set.Status.CurrentRevision}, &current))
	f.create(f.revision(&current, "CloneSet", set,
		`{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"canary"}},`+
			`"spec":{"containers":[{"name":"main","image":"evil:1","securityContext":{"privileged":true}}]}}}}`))
	w.Edit(set, func() {
		set.Spec.Template.Spec.Containers[0].Image, set.Spec.UpdateStrategy.Partition = "image:2", new(intstr.FromInt32(1))
	})
	halfUpdated := func() error {
		count := map[string]int{}
		for _, pod := range w.stored(set.Name) {
			if pod.DeletionTimestamp == nil && planning.Ready(pod) {
				count[pod.Spec.Containers[0].Image]++
			}
		}
		return await.ErrorIf(!maps.Equal(count, map[string]int{"image:1": 1, "image:2": 1}), "images %v", count)
	}
	w.Until("one of the pods is updated", halfUpdated)
	pods := w.stored(set.Name)
	deleted := ""
	for name, pod := range pods {
		if pod.Spec.Containers[0].Image == "image:1" {
			deleted = name
			w.Delete(pod, client.GracePeriodSeconds(0))
		}
	}
	w.Until("the pod of the old revision is replaced", func() error {
		return errors.Join(await.ErrorIf(w.stored(set.Name)[deleted] != nil, "the pod exists"), halfUpdated())
	})
}

// is returns an error if a count differs.
func is(got, want int32) error {
	return await.ErrorIf(got != want, "%d, want %d", got, want)
}
