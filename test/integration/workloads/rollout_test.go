// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/target"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// seamark runs a command in the namespace, and checks its exit code and that the output has the texts in order.
func (w *world) seamark(kubeconfig, command string, code int, want ...string) {
	w.Helper()
	var out bytes.Buffer
	root := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}, "seamark", "test")
	root.SetArgs(append(strings.Fields(command), "--kubeconfig="+kubeconfig, "--namespace="+w.Namespace))
	err := root.ExecuteContext(w.Context())
	text := out.String()
	expect.Equal(w, "exit code of "+command+": "+text, code, exit.Code(err))
	for _, part := range want {
		_, after, found := strings.Cut(text, part)
		if !found {
			w.Fatalf("%s: %q is missing in:\n%s", command, part, out.String())
		}
		text = after
	}
}

// TestRollouts runs the commands of rollouts on a set of each kind, as a user would: an update is watched and undone, the set
// is restarted, paused and resumed. A user who may not list sets watches it, too.
func TestRollouts(t *testing.T) {
	w := newWorld(t)
	config, watcher := env.Kubeconfig(t, w.Config), env.Kubeconfig(t, w.User(t, "watcher"))
	w.Grant(t, w.Namespace, env.UserSubject("watcher"), rbacv1.PolicyRule{
		APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"clonesets", "statefulsets"}, Verbs: []string{"get", "watch"},
	})
	const replicas = 3
	for name, set := range map[string]client.Object{
		"cloneset/arena": w.cloneSet("arena", replicas, func(set *v1alpha1.CloneSet) {
			set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType
		}),
		"statefulset/db": w.statefulSet("db", replicas, parallel, func(set *v1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{PodUpdatePolicy: v1beta1.InPlaceIfPossiblePodUpdateStrategyType}
		}),
	} {
		kind, short, _ := strings.Cut(name, "/")
		full := kind + ".apps.kruise.io/" + short
		w.seamark(config, "rollout status "+name+" --timeout=1m", exit.OK, fmt.Sprintf("%s %q successfully rolled out", kind, short))
		w.seamark(config, "top", exit.OK, "MESSAGE", name+" ", "3/3", "Complete", "3 of 3 pods are updated and available")
		w.seamark(config, "rollout undo "+name, exit.Failed, "no rollout history found")
		const image = `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"image:2"}]}}}}`
		w.Patch(set, image)
		w.seamark(config, "rollout status "+name+" --timeout=1m", exit.OK, "Waiting for ", fmt.Sprintf("%s %q successfully rolled out", kind, short))
		w.settled(set, replicas, "image:2")
		w.seamark(config, "rollout history "+name, exit.OK, full, "REVISION", "1 ", "2 ", "spec.containers[main].image: image:1 → image:2")
		w.seamark(config, "rollout history "+name+" --revision=1", exit.OK, full+" with revision #1", "image: image:1")
		w.seamark(config, "rollout history "+name+" --revision=7", exit.Failed, "revision 7 not found: its revisions are 1, 2")

		w.seamark(config, "rollout undo "+name+" --dry-run=server", exit.OK, "revision 1: 3 pods to update in place", "rolled back (server dry run)")
		w.Get(set)
		w.settled(set, replicas, "image:2")
		w.seamark(config, "rollout undo "+name, exit.OK, full+": revision 1: 3 pods to update in place", full+" rolled back")
		w.settled(set, replicas, "image:1")

		before := w.stored(short)
		w.seamark(config, "rollout restart "+name, exit.OK, full+" restarted")
		w.seamark(config, "rollout status "+name+" --timeout=1m", exit.OK, "successfully rolled out")
		for pod, after := range w.stored(short) {
			if old := before[pod]; old != nil && old.UID == after.UID {
				t.Errorf("%s: pod %s is not recreated by a restart", name, pod)
			}
		}

		w.seamark(config, "rollout pause "+name+" --field-manager=ci", exit.OK, full+" paused")
		w.Get(set)
		if !slices.ContainsFunc(set.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == "ci" }) {
			t.Errorf("%s: the managers of the fields are %v", name, set.GetManagedFields())
		}
		w.seamark(config, "rollout pause "+name, exit.Failed, full+" is already paused")
		w.Patch(set, image)
		w.seamark(watcher, "rollout status "+name+" --timeout=2s", exit.Failed, "timed out after 2s: the update is paused: 0 of 3 pods are updated")
		w.seamark(config, "top", exit.OK, name+" ", "0/3", "Paused", "the update is paused: 0 of 3 pods are updated")
		w.seamark(config, "rollout restart "+name, exit.Failed, "cannot be restarted while it is paused")
		w.seamark(config, "rollout resume "+name, exit.OK, full+" resumed")
		w.seamark(config, "rollout status -l kind=none "+kind, exit.OK, "no "+kind+"s with the labels kind=none")
		w.seamark(watcher, "rollout status "+kind+" "+short+" --timeout=1m", exit.OK, "successfully rolled out")
		w.settled(set, replicas, "image:2")
		w.Delete(set)
		w.seamark(config, "rollout status "+name, exit.Failed, full+" not found in namespace "+w.Namespace)
	}
}

// TestImagesAndWaits sets images as a user with the role edit, and waits as one with the role view: a wait is not satisfied by the
// status of an earlier generation.
func TestImagesAndWaits(t *testing.T) {
	w := newWorldWithoutProgram(t, servers.Parallel(t))
	view := w.user("view", "system:aggregate-to-view", "seamark-workloads-view")
	edit := w.user("edit", "system:aggregate-to-view", "seamark-workloads-view", "system:aggregate-to-edit", "seamark-workloads-edit")
	const replicas = 3
	for name, create := range map[string]func(short string) client.Object{
		"cloneset/arena": func(short string) client.Object { return w.cloneSet(short, replicas) },
		"statefulset/db": func(short string) client.Object { return w.statefulSet(short, replicas, parallel) },
	} {
		kind, short, _ := strings.Cut(name, "/")
		full := kind + ".apps.kruise.io/" + short
		set := create(short)
		w.seamark(view, "wait "+name+" --for=condition=Ready --timeout=1s", exit.Failed, full+" condition=Ready: not met: generation 1 is not processed yet\n")
		stop := w.start()
		w.seamark(view, "wait "+name+" --for=condition=Ready --timeout=1m", exit.OK, full+" condition=Ready: met")
		w.settled(set, replicas, "image:1")
		stop()

		w.seamark(view, "set image "+name+" main=image:2", exit.Failed, "patch", kind+"s.apps.kruise.io")
		w.seamark(edit, "set image "+name+" side=image:2", exit.Failed, `container "side" not found: its containers are main`)
		w.seamark(edit, "set image "+name+" main=image:2 --dry-run=server -o=jsonpath={.spec.template.spec.containers[0].image}", exit.OK, "image:2")
		w.seamark(edit, "set image "+name+" *=image:2", exit.OK, full+" image updated\n")
		for _, requirement := range []string{"condition=Ready", "condition=Ready:True", "jsonpath={.status.updatedReplicas}=3"} {
			w.seamark(view, "wait "+name+" --for="+requirement+" --timeout=1s", exit.Failed,
				requirement+": not met: generation 2 is not processed yet (observed 1)\n", "1 of 1 expressions not met after 1s")
		}
		stop = w.start()
		w.seamark(view, "wait "+name+" --for=condition=Ready --for=jsonpath={.status.updatedReplicas}=3 --timeout=1m", exit.OK, "Ready: met", "=3: met")
		w.settled(set, replicas, "image:2")
		w.seamark(view, "wait "+kind+" --all --for=condition=Ready", exit.OK, full+" condition=Ready: met")
		w.Delete(set)
		w.seamark(view, "wait "+name+" --for=delete --timeout=1m", exit.OK, full+" delete: met")
		w.seamark(view, "wait "+name+" --for=condition=Ready", exit.Failed, full+" not found in namespace "+w.Namespace)
		stop()
	}
}

// TestCanaryIsTakenBack sets the template of a StatefulSet back to that of the pods below its partition, while the update is paused:
// as many pods as the partition permits have the revision, but not those that it permits to update.
func TestCanaryIsTakenBack(t *testing.T) {
	w := newWorld(t)
	config := env.Kubeconfig(t, w.Config)
	const replicas = 3
	set := w.statefulSet("db", replicas, parallel, func(set *v1beta1.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{Partition: new(int32(replicas - 1))}
	})
	w.seamark(config, "rollout status statefulset/db --timeout=1m", exit.OK, "successfully rolled out")
	w.seamark(config, "set image statefulset/db main=image:2", exit.OK, "image updated")
	w.seamark(config, "rollout status statefulset/db --timeout=1m", exit.OK, "1 of 3 pods are updated and available; kept at an earlier revision: 2")
	w.Patch(set, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"image:1"}]}},"updateStrategy":{"rollingUpdate":{"paused":true}}}}`)
	const paused = "the update is paused: 1 pod to be updated"
	w.seamark(config, "rollout status statefulset/db --timeout=2s", exit.Failed, "timed out after 2s: "+paused)
	w.seamark(config, "wait statefulset/db --for=condition=Ready --timeout=1s", exit.Failed, "not met: False: Paused: "+paused)
	w.seamark(config, "explain pod/db-2", exit.Failed, "it does not have the update revision: "+paused+" (spec.updateStrategy.rollingUpdate.partition permits 1 of 3)")
	w.seamark(config, "rollout resume statefulset/db", exit.OK, "resumed")
	w.seamark(config, "wait statefulset/db --for=condition=Ready --timeout=1m", exit.OK, "met")
	for name, pod := range w.stored("db") {
		expect.Equal(t, "image of "+name, "image:1", pod.Spec.Containers[0].Image)
	}
}

// TestOtherKinds runs the commands on objects of kinds whose controllers do not run here.
func TestOtherKinds(t *testing.T) {
	w := newWorldWithoutProgram(t, servers.Parallel(t))
	config := env.Kubeconfig(t, w.Config)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	daemonSet := &v1alpha1.DaemonSet{ObjectMeta: w.Meta("agent"), Spec: v1alpha1.DaemonSetSpec{Selector: selector, Template: template("agent", "image:1")}}
	sidecarSet := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: v1alpha1.SidecarSetSpec{
		Selector:       selector,
		InitContainers: []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "setup", Image: "image:1"}}},
		Containers:     []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "main", Image: "image:1"}}},
	}}
	w.Create(daemonSet, sidecarSet)
	w.seamark(config, "set image daemonset agent main=image:2", exit.OK, "daemonset.apps.kruise.io/agent image updated\n")
	w.seamark(config, "set image sidecarset/"+w.Namespace+" main=image:2 setup=image:3", exit.OK, "sidecarset.apps.kruise.io/"+w.Namespace+" image updated\n")
	w.Get(daemonSet)
	w.Get(sidecarSet)
	expect.Equal(t, "image of the DaemonSet", "image:2", daemonSet.Spec.Template.Spec.Containers[0].Image)
	expect.Equal(t, "images of the SidecarSet", "image:3 image:2", sidecarSet.Spec.InitContainers[0].Image+" "+sidecarSet.Spec.Containers[0].Image)
	sidecarSet.Status.ObservedGeneration, sidecarSet.Status.UpdatedReadyPods = sidecarSet.Generation, 12
	w.UpdateStatus(sidecarSet)
	w.seamark(config, "wait sidecarset/"+w.Namespace+" --for=jsonpath={.status.updatedReadyPods}=12", exit.OK, "updatedReadyPods}=12: met")
	w.waitForJobs(config)
	for _, kind := range kinds.Table() {
		w.seamark(config, "wait "+kind.Definition()+"/none --for=delete", exit.OK, "/none delete: met")
	}

	// What the command does if the containers have changed since it read them.
	connected, err := client.NewWithWatch(w.Config, client.Options{Scheme: w.Client.Scheme()})
	w.Must(err)
	object := target.New(cluster.Connection{Client: connected}, kinds.ByName("daemonset"), w.Namespace, "agent")
	err = object.Patch(w.Context(), daemonSet, types.JSONPatchType, []map[string]any{
		{"op": "test", "path": "/spec/template/spec/containers/0/name", "value": "side"},
		{"op": "add", "path": "/spec/template/spec/containers/0/image", "value": "image:3"},
	})
	if err == nil || exit.Code(err) != exit.Failed || !strings.Contains(err.Error(), "has changed since it was read") {
		t.Errorf("a patch whose test fails: %v", err)
	}
}

// waitForJobs pauses jobs of each kind, and waits for their conditions.
func (w *world) waitForJobs(config string) {
	w.Helper()
	broadcast := &v1alpha1.BroadcastJob{ObjectMeta: w.Meta("setup"), Spec: v1alpha1.BroadcastJobSpec{Template: template("setup", "image:1")}}
	broadcast.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	pull := &v1alpha1.ImagePullJob{ObjectMeta: w.Meta("arena")}
	pull.Spec.Image = "image:1"
	cron := &v1alpha1.AdvancedCronJob{ObjectMeta: w.Meta("report"), Spec: v1alpha1.AdvancedCronJobSpec{
		Schedule: "@daily", Template: v1alpha1.CronJobTemplate{JobTemplate: &runtime.RawExtension{
			Raw: []byte(`{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"image:1"}]}}}}`),
		}},
	}}
	w.Create(broadcast, pull, cron)
	for name, job := range map[string]struct {
		object     client.Object
		observed   *int64
		conditions *[]metav1.Condition
	}{
		"broadcastjob/setup":     {broadcast, &broadcast.Status.ObservedGeneration, &broadcast.Status.Conditions},
		"imagepulljob/arena":     {pull, &pull.Status.ObservedGeneration, &pull.Status.Conditions},
		"advancedcronjob/report": {cron, &cron.Status.ObservedGeneration, &cron.Status.Conditions},
	} {
		if job.object != pull {
			w.seamark(config, "rollout pause "+name, exit.OK, " paused")
			w.seamark(config, "rollout resume "+name, exit.OK, " resumed")
			w.Get(job.object)
		}
		w.seamark(config, "wait "+name+" --for=condition=Complete --timeout=0", exit.Failed, "is not processed yet")
		*job.observed = job.object.GetGeneration()
		meta.SetStatusCondition(job.conditions, metav1.Condition{Type: "Complete", Status: metav1.ConditionFalse, Reason: "Waiting", Message: "for a node"})
		w.UpdateStatus(job.object)
		w.seamark(config, "wait "+name+" --for=condition=Complete --timeout=0", exit.Failed, "not met: False: Waiting: for a node")
		w.seamark(config, "wait "+name+" --for=condition=Complete=False", exit.OK, name[strings.Index(name, "/"):]+" condition=Complete=False: met")
	}
}

// user returns the kubeconfig of a user who has the roles in the namespace. The API server of the test does not aggregate roles.
func (w *world) user(name string, roles ...string) string {
	w.Helper()
	for _, role := range roles {
		w.Create(&rbacv1.RoleBinding{
			ObjectMeta: w.Meta(name + "-" + strings.ReplaceAll(role, ":", "-")), Subjects: []rbacv1.Subject{env.UserSubject(name)},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		})
	}
	for _, verb := range map[string][]string{"view": {"watch"}, "edit": {"watch", "patch"}}[name] {
		w.AwaitRight(w, w.Namespace, env.UserSubject(name), rbacv1.PolicyRule{
			APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"clonesets"}, Verbs: []string{verb},
		})
	}
	return env.Kubeconfig(w, w.User(w, name))
}
