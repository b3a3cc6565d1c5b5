// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

const (
	// managerLease is the name of the lease of the managers, and workloadsLease that of the controllers of workloads.
	managerLease   = "seamark-manager"
	workloadsLease = "seamark-workloads"
	// maxObjects is the number of agents, events and markers of other namespaces that are read: one
	// answer to a list.
	maxObjects = 500
)

// read reads everything that the marks of the pod depend on, as far as the user may.
func (o *Options) read(ctx context.Context, connection cluster.Connection) (explanation.Input, error) {
	in := explanation.Input{
		Namespace: connection.Namespace, Name: o.Pod, Marker: o.Marker, SystemNamespace: o.SeamarkNamespace, Now: o.now(),
		Program: o.program,
		Unread:  make(map[permission.Resource]permission.Missing),
	}
	snapshot, err := cluster.Read(ctx, connection.Client, cluster.Query{Namespace: in.Namespace, Names: []string{o.Pod}, Whole: true})
	if err != nil {
		return in, err
	}
	if err := snapshot.Require(permission.Pods); err != nil {
		return in, err
	}
	if err := snapshot.AbsentError(ctx, connection.Client, in.Namespace); err != nil {
		return in, namesake(ctx, connection, in.Name, err)
	}
	in.Pod, in.Markers = snapshot.Pods[0], snapshot.Markers
	node := in.Pod.Spec.NodeName
	in.Node, in.Plan, in.Slices = snapshot.Nodes[node], snapshot.Plans[node], snapshot.Reports[node]
	for _, missing := range snapshot.Missing {
		in.Unread[missing.Resource] = missing
		if missing.Resource == permission.PlanSlices {
			in.Unread[permission.Plans] = missing
		}
	}
	r := reading{reader: connection.Client, in: &in}
	if node != "" {
		r.lease(ctx, managerLease)
		r.agent(ctx, node)
		r.outage(ctx, node)
	}
	if _, noReports := in.Unread[permission.Reports]; noReports {
		r.events(ctx)
	}
	if len(in.Markers) == 0 {
		r.elsewhere(ctx)
	}
	r.sidecarSets(ctx)
	r.set(ctx)
	return in, r.err
}

// reading reads what only this command needs. err is the first error that is not a missing
// permission.
type reading struct {
	reader client.Reader
	in     *explanation.Input
	agents []staleness.Agent
	err    error
}

// note records that a resource could not be read, and returns whether it could be.
func (r *reading) note(err error, resource permission.Resource, verb, namespace string) bool {
	missing, failure := cluster.MissingOf(err, verb, resource, namespace)
	if missing != nil {
		r.in.Unread[resource] = *missing
	}
	if r.err == nil {
		r.err = failure
	}
	return err == nil
}

func (r *reading) lease(ctx context.Context, name string) {
	namespace, lease := r.in.SystemNamespace, &coordinationv1.Lease{}
	err := r.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, lease)
	if apierrors.IsNotFound(err) {
		return
	}
	if r.note(err, explanation.Leases, "get", namespace) {
		r.in.Lease = lease
	}
}

// agent reads the agent of the node. A node has one, except for a moment during an update: then the
// newest counts.
func (r *reading) agent(ctx context.Context, node string) {
	namespace, pods := r.in.SystemNamespace, &corev1.PodList{}
	err := r.reader.List(ctx, pods, client.InNamespace(namespace), client.Limit(maxObjects),
		client.MatchingLabels{"app.kubernetes.io/component": "agent"}, client.MatchingFields{gather.NodeNameField: node})
	if !r.note(err, permission.Pods, "list", namespace) {
		return
	}
	for i := range pods.Items {
		if podview.IsAgent(&pods.Items[i], namespace) {
			r.agents = append(r.agents, podview.AgentReadiness(&pods.Items[i]))
		}
		if pod := &pods.Items[i]; r.in.Agent == nil || r.in.Agent.CreationTimestamp.Before(&pod.CreationTimestamp) {
			r.in.Agent = pod
		}
	}
}

// outage reads whether the states of the node are current, if a marker depends on it and all of it can be
// read. Unlike the manager, it does not know what it was before.
func (r *reading) outage(ctx context.Context, name string) {
	_, noNodes := r.in.Unread[permission.Nodes]
	_, noAgents := r.in.Unread[permission.Pods]
	stale := func(m *v1alpha1.PodProbeMarker) bool {
		return slices.ContainsFunc(m.Spec.Probes, func(p v1alpha1.PodContainerProbe) bool { return p.StaleAfterSeconds != nil })
	}
	if noNodes || noAgents || !slices.ContainsFunc(r.in.Markers, stale) {
		return
	}
	node := &corev1.Node{}
	err := r.reader.Get(ctx, types.NamespacedName{Name: name}, node)
	switch {
	case apierrors.IsNotFound(err):
		node = nil
	case !r.note(err, permission.Nodes, "get", ""):
		return
	}
	r.in.Outage = staleness.Decide(staleness.Outage{}, staleness.Evidence{Node: podview.NodeReadiness(node), Agents: r.agents}, r.in.Now)
}

// set reads the set of apps.kruise.io that controls the pod: one request. Without the permission, its hooks are not known.
func (r *reading) set(ctx context.Context) {
	owner := metav1.GetControllerOfNoCopy(r.in.Pod)
	if owner == nil {
		return
	}
	kind := kinds.ByGroupKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind())
	if kind == nil || kind.Role != kinds.Set {
		return
	}
	set := kind.New()
	err := r.reader.Get(ctx, types.NamespacedName{Namespace: r.in.Namespace, Name: owner.Name}, set)
	missing, failure := cluster.MissingOf(client.IgnoreNotFound(err), "get", permission.Resource(kind.Definition()), r.in.Namespace)
	if missing == nil && r.err == nil {
		r.err = failure
	}
	if err == nil && set.GetUID() == owner.UID {
		r.in.Set = set
	}
}

// sidecarSets reads the SidecarSets. Few users may, and most clusters have none.
func (r *reading) sidecarSets(ctx context.Context) {
	list := &v1alpha1.SidecarSetList{}
	err := r.reader.List(ctx, list, client.Limit(maxObjects))
	if missing, failure := cluster.MissingOf(err, "list", "sidecarsets.apps.kruise.io", ""); missing == nil && r.err == nil {
		r.err = failure
	}
	for i := range list.Items {
		r.in.SidecarSets = append(r.in.SidecarSets, &list.Items[i])
	}
}

func (r *reading) events(ctx context.Context) {
	events := &corev1.EventList{}
	err := r.reader.List(ctx, events, client.InNamespace(r.in.Namespace), client.Limit(maxObjects),
		client.MatchingFields{"involvedObject.name": r.in.Name})
	if r.note(err, permission.Events, "list", r.in.Namespace) {
		r.in.Events = events.Items
	}
}

// elsewhere reads markers of other namespaces. Without the permission, nothing is suggested.
func (r *reading) elsewhere(ctx context.Context) {
	if _, found := r.in.Unread[permission.Markers]; found {
		return
	}
	markers := &v1alpha1.PodProbeMarkerList{}
	if err := r.reader.List(ctx, markers, client.Limit(maxObjects)); err != nil {
		return
	}
	for i := range markers.Items {
		r.in.Elsewhere = append(r.in.Elsewhere, &markers.Items[i])
	}
}
