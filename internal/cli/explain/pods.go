// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/internal/cli/tree"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// podKind is a kind whose objects are explained by the marks of their pods: PodProbeMarkers, and workloads of Kubernetes itself.
type podKind struct {
	kind, resource, group string
	// short are the short names of kubectl.
	short []string
	// grouped is whether only a name with the group means the kind: apps.kruise.io has one with the same name.
	grouped bool
	object  func() client.Object
	// selector returns the selector of the pods of an object.
	selector func(client.Object) *metav1.LabelSelector
}

// podKinds returns the kinds, in the order in which commands list them.
func podKinds() []podKind {
	return []podKind{
		{
			kind: "PodProbeMarker", resource: "podprobemarkers", group: v1alpha1.GroupName, short: []string{"ppm"},
			object:   func() client.Object { return &v1alpha1.PodProbeMarker{} },
			selector: selectorOf(func(o *v1alpha1.PodProbeMarker) *metav1.LabelSelector { return o.Spec.Selector }),
		},
		{
			kind: "Deployment", resource: "deployments", group: appsv1.GroupName, short: []string{"deploy"},
			object:   func() client.Object { return &appsv1.Deployment{} },
			selector: selectorOf(func(o *appsv1.Deployment) *metav1.LabelSelector { return o.Spec.Selector }),
		},
		{
			kind: "ReplicaSet", resource: "replicasets", group: appsv1.GroupName, short: []string{"rs"},
			object:   func() client.Object { return &appsv1.ReplicaSet{} },
			selector: selectorOf(func(o *appsv1.ReplicaSet) *metav1.LabelSelector { return o.Spec.Selector }),
		},
		{
			kind: "StatefulSet", resource: "statefulsets", group: appsv1.GroupName, short: []string{"sts"}, grouped: true,
			object:   func() client.Object { return &appsv1.StatefulSet{} },
			selector: selectorOf(func(o *appsv1.StatefulSet) *metav1.LabelSelector { return o.Spec.Selector }),
		},
		{
			kind: "DaemonSet", resource: "daemonsets", group: appsv1.GroupName, short: []string{"ds"}, grouped: true,
			object:   func() client.Object { return &appsv1.DaemonSet{} },
			selector: selectorOf(func(o *appsv1.DaemonSet) *metav1.LabelSelector { return o.Spec.Selector }),
		},
		{
			kind: "Job", resource: "jobs", group: batchv1.GroupName,
			object:   func() client.Object { return &batchv1.Job{} },
			selector: selectorOf(func(o *batchv1.Job) *metav1.LabelSelector { return o.Spec.Selector }),
		},
	}
}

// selectorOf returns the function for any object.
func selectorOf[T client.Object](of func(T) *metav1.LabelSelector) func(client.Object) *metav1.LabelSelector {
	return func(object client.Object) *metav1.LabelSelector {
		typed, ok := object.(T)
		if !ok {
			return nil
		}
		return of(typed)
	}
}

// name returns the name of the kind as users write it.
func (k *podKind) name() string {
	name := strings.ToLower(k.kind)
	if k.grouped {
		name += "." + k.group
	}
	return name
}

// podKindByName returns the kind with the name as users write it, such as deploy or statefulset.apps, nil if there is none.
func podKindByName(name string) *podKind {
	name = strings.ToLower(name)
	for _, kind := range podKinds() {
		bare, hasGroup := strings.CutSuffix(name, "."+kind.group)
		if (hasGroup || !kind.grouped) && slices.Contains(append(kind.short, strings.ToLower(kind.kind), kind.resource), bare) {
			return &kind
		}
	}
	return nil
}

// permission returns the resource as kubectl names it.
func (k *podKind) permission() permission.Resource {
	return permission.Resource(k.resource + "." + k.group)
}

// explainPods explains an object by the marks of its pods.
func (o *Options) explainPods(ctx context.Context, connection cluster.Connection, kind *podKind, name string) error {
	in, err := o.readPods(ctx, connection, kind, name)
	if err != nil {
		return err
	}
	return o.printSettled(explanation.Pods(in))
}

// readPods reads the object, its pods with their states, and the agents of their nodes. The number of requests does not depend on the
// number of pods: beyond some nodes, those about nodes list all of the cluster.
func (o *Options) readPods(ctx context.Context, connection cluster.Connection, kind *podKind, name string) (explanation.PodsInput, error) {
	namespace, object := connection.Namespace, kind.object()
	in := explanation.PodsInput{
		Kind: kind.kind, Resource: strings.ToLower(kind.kind) + "." + kind.group + "/" + name, Object: object,
		SystemNamespace: o.SeamarkNamespace, Now: o.now(), Program: o.program, Unread: map[permission.Resource]permission.Missing{},
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if err := kind.get(ctx, connection.Client, key, object); err != nil {
		return in, err
	}
	selector, err := metav1.LabelSelectorAsSelector(kind.selector(object))
	if err != nil {
		selector = labels.Nothing() // The explanation says that the marker is invalid.
	}
	snapshot, err := cluster.Read(ctx, connection.Client, cluster.Query{Namespace: namespace, Selector: selector, Controllers: true, Statuses: true})
	if err != nil {
		return in, err
	}
	if err := snapshot.Require(permission.Pods); err != nil {
		return in, err
	}
	for _, missing := range snapshot.Missing {
		in.Unread[missing.Resource] = missing
	}
	if _, isMarker := object.(*v1alpha1.PodProbeMarker); !isMarker {
		snapshot.Pods = slices.DeleteFunc(snapshot.Pods, func(pod *corev1.Pod) bool { return !owns(kind, object, pod) })
	}
	snapshot.Now = in.Now
	in.Pods, in.Markers, in.Nodes, in.States = snapshot.Pods, snapshot.Markers, snapshot.Nodes, probestatus.List(snapshot.Input)
	r := reading{reader: connection.Client, in: &explanation.Input{
		Namespace: namespace, Name: name, SystemNamespace: o.SeamarkNamespace, Unread: in.Unread, Markers: in.Markers,
	}}
	r.lease(ctx, managerLease)
	in.Agents = r.agentsOf(ctx, in.Pods)
	if len(in.Markers) == 0 {
		r.elsewhere(ctx)
	}
	if len(in.Pods) == 0 {
		in.Near = r.near(ctx)
	}
	in.Lease, in.Elsewhere = r.in.Lease, r.in.Elsewhere
	return in, r.err
}

// get reads the object, and names a similar one if there is none.
func (k *podKind) get(ctx context.Context, c client.Client, key types.NamespacedName, object client.Object) error {
	err := c.Get(ctx, key, object)
	if apierrors.IsNotFound(err) && !cluster.IsNotInstalled(err) {
		gvk, _ := c.GroupVersionKindFor(object)
		return cluster.NotFound(strings.ToLower(k.kind), key.Name, cluster.Names(ctx, c, gvk, key.Namespace), cluster.Where(key.Namespace))
	}
	missing, failure := cluster.MissingOf(err, "get", k.permission(), key.Namespace)
	if missing != nil {
		return exit.NoAccess(fmt.Errorf("%s; %s", missing, missing.Fix()))
	}
	return failure
}

// namesake returns the error of a pod that does not exist. It names an object of another kind that has the name.
func namesake(ctx context.Context, connection cluster.Connection, name string, err error) error {
	objects := map[string]client.Object{}
	for _, kind := range kinds.Table() {
		objects[strings.ToLower(kind.Kind)] = kind.New()
	}
	for _, kind := range podKinds() {
		objects[kind.name()] = kind.object()
	}
	for _, kind := range slices.Sorted(maps.Keys(objects)) {
		// What the user may not read is not named.
		if connection.Client.Get(ctx, types.NamespacedName{Namespace: connection.Namespace, Name: name}, objects[kind]) == nil {
			return exit.Failure(fmt.Errorf("%w; there is a %s: did you mean %q?", err, kind, kind+"/"+name))
		}
	}
	return err
}

// owns reports whether the pod belongs to the workload.
func owns(kind *podKind, object client.Object, pod *corev1.Pod) bool {
	if kind.kind != "Deployment" {
		return metav1.IsControlledBy(pod, object)
	}
	controller, name, _ := tree.OwnerOf(pod)
	return controller == kind.kind && name == object.GetName()
}

// maxSingleAgents is the number of nodes up to which the agent of each is read on its own.
const maxSingleAgents = 8

// agentsOf reads the agents of the nodes of the pods, by node. Beyond maxSingleAgents nodes, it lists all agents.
func (r *reading) agentsOf(ctx context.Context, pods []*corev1.Pod) map[string]*corev1.Pod {
	agents := map[string]*corev1.Pod{}
	var nodes []string
	for _, pod := range pods {
		if node := pod.Spec.NodeName; node != "" && !slices.Contains(nodes, node) {
			if nodes = append(nodes, node); len(nodes) > maxSingleAgents {
				break
			}
		}
	}
	if len(nodes) <= maxSingleAgents {
		for _, node := range nodes {
			r.in.Agent = nil
			r.agent(ctx, node)
			agents[node] = r.in.Agent
		}
		return agents
	}
	err := cluster.Each(ctx, r.reader, &corev1.PodList{}, func(pod *corev1.Pod) {
		// Few of their fields are kept: there may be thousands.
		if last := agents[pod.Spec.NodeName]; last == nil || last.CreationTimestamp.Before(&pod.CreationTimestamp) {
			agents[pod.Spec.NodeName] = &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: pod.Name, CreationTimestamp: pod.CreationTimestamp}, Status: pod.Status,
			}
		}
	}, client.InNamespace(r.in.SystemNamespace), client.MatchingLabels{"app.kubernetes.io/component": "agent"})
	r.note(err, permission.Pods, "list", r.in.SystemNamespace)
	return agents
}

// near reads some pods of the namespace, to find those whose labels are similar.
func (r *reading) near(ctx context.Context) (found []*corev1.Pod) {
	pods := &corev1.PodList{}
	if err := r.reader.List(ctx, pods, client.InNamespace(r.in.Namespace), client.Limit(maxObjects)); err != nil {
		return nil
	}
	for i := range pods.Items {
		found = append(found, &pods.Items[i])
	}
	return found
}

// podKindNames returns the names of the kinds that are explained by the marks of their pods.
func podKindNames() []string {
	var names []string
	for _, kind := range podKinds() {
		names = append(names, kind.name())
	}
	return names
}
