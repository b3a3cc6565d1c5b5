// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	explanation "github.com/seamark-dev/seamark/internal/cli/explanation"
	"github.com/seamark-dev/seamark/internal/marking/cached/gather"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

const (
	// managerLease is the name of the lease of the managers.
	managerLease = "seamark-manager"
	// maxObjects is the number of agents, events and markers of other namespaces that are read: one
	// answer to a list.
	maxObjects = 500
)

// read reads everything that the marks of the pod depend on, as far as the user may.
func (o *Options) read(ctx context.Context, connection cluster.Connection) (explanation.Input, error) {
	in := explanation.Input{
		Namespace: connection.Namespace, Name: o.Pod, Marker: o.Marker, SystemNamespace: o.SeamarkNamespace, Now: o.now(),
		Unread: make(map[explanation.Source]explanation.Unread),
	}
	snapshot, err := cluster.Read(ctx, connection.Client, cluster.Query{Namespace: in.Namespace, Names: []string{o.Pod}, Whole: true})
	if err != nil {
		return in, err
	}
	if err := snapshot.Require(permission.Pods); err != nil {
		return in, err
	}
	if err := snapshot.AbsentError(ctx, connection.Client, in.Namespace); err != nil {
		return in, err
	}
	in.Pod, in.Markers = snapshot.Pods[0], snapshot.Markers
	node := in.Pod.Spec.NodeName
	in.Node, in.Plan, in.Slices = snapshot.Nodes[node], snapshot.Plans[node], snapshot.Reports[node]
	for _, missing := range snapshot.Missing {
		if source, known := sourceOf(missing.Resource); known {
			in.Unread[source] = unread(missing)
		}
	}
	r := reading{reader: connection.Client, in: &in}
	if node != "" {
		r.lease(ctx)
		r.agent(ctx, node)
	}
	if _, noReports := in.Unread[explanation.SourceReports]; noReports {
		r.events(ctx)
	}
	if len(in.Markers) == 0 {
		r.elsewhere(ctx)
	}
	return in, r.err
}

// sourceOf returns the input that is read from the resource.
func sourceOf(resource permission.Resource) (explanation.Source, bool) {
	switch resource {
	case permission.Markers:
		return explanation.SourceMarkers, true
	case permission.Nodes:
		return explanation.SourceNode, true
	case permission.Plans:
		return explanation.SourcePlan, true
	case permission.Reports:
		return explanation.SourceReports, true
	default:
		return "", false
	}
}

// unread returns why a resource could not be read, and the command that shows it.
func unread(missing permission.Missing) explanation.Unread {
	u := explanation.Unread{Reason: missing.String(), NotServed: missing.Verb == ""}
	switch {
	case u.NotServed:
		u.Check = fmt.Sprintf("kubectl get crd %s", missing.Resource)
	case missing.Namespace == "":
		u.Check = fmt.Sprintf("kubectl auth can-i %s %s", missing.Verb, missing.Resource)
	default:
		u.Check = fmt.Sprintf("kubectl -n %s auth can-i %s %s", missing.Namespace, missing.Verb, missing.Resource)
	}
	return u
}

// reading reads what only this command needs. err is the first error that is not a missing
// permission.
type reading struct {
	reader client.Reader
	in     *explanation.Input
	err    error
}

// note records why a source could not be read, and returns whether it could be.
func (r *reading) note(err error, source explanation.Source, verb, resource, namespace string) bool {
	switch {
	case err == nil:
		return true
	case apierrors.IsForbidden(err):
		r.in.Unread[source] = unread(permission.Missing{Resource: permission.Resource(resource), Verb: verb, Namespace: namespace})
	case r.err == nil:
		r.err = cluster.Unreachable(fmt.Errorf("%s %s of namespace %s: %w", verb, resource, namespace, err))
	}
	return false
}

func (r *reading) lease(ctx context.Context) {
	namespace, lease := r.in.SystemNamespace, &coordinationv1.Lease{}
	err := r.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: managerLease}, lease)
	if apierrors.IsNotFound(err) {
		return
	}
	if r.note(err, explanation.SourceManager, "get", "leases.coordination.k8s.io", namespace) {
		r.in.Lease = lease
	}
}

// agent reads the agent of the node. A node has one, except for a moment during an update: then the
// newest counts.
func (r *reading) agent(ctx context.Context, node string) {
	namespace, pods := r.in.SystemNamespace, &corev1.PodList{}
	err := r.reader.List(ctx, pods, client.InNamespace(namespace), client.Limit(maxObjects),
		client.MatchingLabels{"app.kubernetes.io/component": "agent"}, client.MatchingFields{gather.NodeNameField: node})
	if !r.note(err, explanation.SourceAgent, "list", string(permission.Pods), namespace) {
		return
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; r.in.Agent == nil || r.in.Agent.CreationTimestamp.Before(&pod.CreationTimestamp) {
			r.in.Agent = pod
		}
	}
}

func (r *reading) events(ctx context.Context) {
	events := &corev1.EventList{}
	err := r.reader.List(ctx, events, client.InNamespace(r.in.Namespace), client.Limit(maxObjects),
		client.MatchingFields{"involvedObject.name": r.in.Name})
	if r.note(err, explanation.SourceEvents, "list", "events", r.in.Namespace) {
		r.in.Events = events.Items
	}
}

// elsewhere reads markers of other namespaces. Without the permission, nothing is suggested.
func (r *reading) elsewhere(ctx context.Context) {
	if _, found := r.in.Unread[explanation.SourceMarkers]; found {
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
