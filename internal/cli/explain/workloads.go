// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/explanation"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/workloads/cronjob"
)

// workloadKind is a kind of sets or jobs.
type workloadKind struct {
	// name is the kind, and short are its short names.
	name  string
	short []string
	// object and list are empty objects.
	object client.Object
	list   client.ObjectList
	// pods and nodes are whether its state depends on them.
	pods, nodes bool
}

func kinds() []workloadKind {
	return []workloadKind{
		{name: "DaemonSet", short: []string{"daemon", "ads", "ds"}, object: &v1alpha1.DaemonSet{}, list: &v1alpha1.DaemonSetList{}, pods: true, nodes: true},
		{name: "BroadcastJob", short: []string{"bcj"}, object: &v1alpha1.BroadcastJob{}, list: &v1alpha1.BroadcastJobList{}, pods: true, nodes: true},
		{name: "ImagePullJob", object: &v1alpha1.ImagePullJob{}, list: &v1alpha1.ImagePullJobList{}, pods: true, nodes: true},
		{name: "AdvancedCronJob", short: []string{"acj"}, object: &v1alpha1.AdvancedCronJob{}, list: &v1alpha1.AdvancedCronJobList{}},
		{name: "SidecarSet", object: &v1alpha1.SidecarSet{}, list: &v1alpha1.SidecarSetList{}},
		{name: "CloneSet", short: []string{"clone"}, object: &v1alpha1.CloneSet{}, list: &v1alpha1.CloneSetList{}, pods: true},
		{name: "StatefulSet", short: []string{"sts", "asts"}, object: &v1beta1.StatefulSet{}, list: &v1beta1.StatefulSetList{}, pods: true},
	}
}

// kindOf returns the kind with the name as users write it, such as daemonset, daemonsets.apps.kruise.io or ads, nil if
// there is none.
func kindOf(name string) *workloadKind {
	name = strings.TrimSuffix(strings.ToLower(name), "."+v1alpha1.GroupName)
	all := kinds()
	i := slices.IndexFunc(all, func(k workloadKind) bool {
		return strings.ToLower(k.name) == strings.TrimSuffix(name, "s") || slices.Contains(k.short, name)
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

func kindNames() []string {
	var names []string
	for _, kind := range kinds() {
		names = append(names, strings.ToLower(kind.name))
	}
	return names
}

// explainWorkload explains a set or a job.
func (o *Options) explainWorkload(ctx context.Context, connection cluster.Connection, kind *workloadKind, name string) error {
	in, err := o.readWorkload(ctx, connection, kind, name)
	if err != nil {
		return err
	}
	x := explanation.Workload(in)
	if err := o.print(x, x.Answer); err != nil {
		return exit.Failure(err)
	}
	if !x.Settled {
		return exit.Failure(fmt.Errorf("%s %s is not settled", kind.name, name))
	}
	return nil
}

// readWorkload reads everything that the state of a set or a job depends on, as far as the user may.
func (o *Options) readWorkload(ctx context.Context, connection cluster.Connection, kind *workloadKind, name string) (explanation.WorkloadInput, error) {
	in := explanation.WorkloadInput{
		Kind: kind.name, Object: kind.object, SystemNamespace: o.SeamarkNamespace, Now: o.now(), Unread: map[permission.Resource]permission.Missing{},
	}
	namespace := connection.Namespace
	if kind.name == "SidecarSet" {
		namespace = ""
	}
	if err := getWorkload(ctx, connection.Client, kind, types.NamespacedName{Namespace: namespace, Name: name}); err != nil {
		return in, err
	}
	r := reading{reader: connection.Client, in: &explanation.Input{Namespace: namespace, Name: name, SystemNamespace: o.SeamarkNamespace, Unread: in.Unread}}
	r.lease(ctx, workloadsLease)
	if kind.nodes {
		readAll(ctx, &r, &corev1.NodeList{}, permission.Nodes, "", func(node *corev1.Node) { in.Nodes = append(in.Nodes, node) })
	}
	if kind.pods {
		readAll(ctx, &r, &corev1.PodList{}, permission.Pods, namespace, func(pod *corev1.Pod) { in.Pods = append(in.Pods, pod) })
	}
	if object, is := kind.object.(*v1alpha1.AdvancedCronJob); is {
		r.events(ctx)
		in.Jobs = r.jobs(ctx, object)
	}
	in.Lease, in.Events = r.in.Lease, r.in.Events
	return in, r.err
}

// getWorkload reads the object, and names a similar one if there is none.
func getWorkload(ctx context.Context, reader client.Reader, kind *workloadKind, key types.NamespacedName) error {
	resource := permission.Resource(strings.ToLower(kind.name) + "s." + v1alpha1.GroupName)
	err := reader.Get(ctx, key, kind.object)
	if apierrors.IsNotFound(err) && !cluster.IsNotInstalled(err) {
		var names []string
		// Without the permission to list, nothing is suggested.
		_ = cluster.Each(ctx, reader, kind.list, func(other client.Object) { names = append(names, other.GetName()) }, client.InNamespace(key.Namespace))
		return cluster.NotFound(strings.ToLower(kind.name), key.Name, names, where(key.Namespace))
	}
	missing, failure := cluster.MissingOf(err, "get", resource, key.Namespace)
	if missing != nil {
		return exit.NoAccess(fmt.Errorf("%s; %s", missing, missing.Fix()))
	}
	return failure
}

// where returns the namespace for a message. It is empty for an object without one.
func where(namespace string) string {
	if namespace == "" {
		return ""
	}
	return cluster.Where(namespace)
}

// readAll lists objects, and notes a missing permission.
func readAll[T client.Object](ctx context.Context, r *reading, list client.ObjectList, resource permission.Resource, namespace string, take func(T)) {
	r.note(cluster.Each(ctx, r.reader, list, take, client.InNamespace(namespace)), resource, "list", namespace)
}

// jobs reads what an AdvancedCronJob has created.
func (r *reading) jobs(ctx context.Context, object *v1alpha1.AdvancedCronJob) []cronjob.Job {
	var found []cronjob.Job
	add := func(job cronjob.Job) {
		if metav1.IsControlledBy(job, object) {
			found = append(found, job)
		}
	}
	if object.Spec.Template.BroadcastJobTemplate != nil {
		readAll(ctx, r, &v1alpha1.BroadcastJobList{}, explanation.BroadcastJobs, object.Namespace, func(job *v1alpha1.BroadcastJob) { add(cronjob.OfBroadcastJob(job)) })
	} else {
		readAll(ctx, r, &batchv1.JobList{}, explanation.Jobs, object.Namespace, func(job *batchv1.Job) { add(cronjob.OfJob(job)) })
	}
	return found
}
