// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// operations returns the values of --for.
func operations() []string { return []string{string(explanation.Delete), string(explanation.Evict)} }

// explainDisruption explains whether the pod, or the pods of the node, can go.
func (o *Options) explainDisruption(ctx context.Context, connection cluster.Connection) error {
	in, err := o.readDisruption(ctx, connection)
	if err != nil {
		return err
	}
	x := explanation.Disruption(in)
	if err := o.print(x, x.Grouped()); err != nil {
		return exit.Failure(err)
	}
	switch {
	case x.Free:
		return nil
	case o.Node != "":
		return exit.Failure(fmt.Errorf("node %s cannot be drained now", o.Node))
	}
	return exit.Failure(fmt.Errorf("pod %s cannot go now", o.Pod))
}

// readDisruption reads the pods, the budgets and markers of their namespaces, and what decides whether guards hold.
func (o *Options) readDisruption(ctx context.Context, connection cluster.Connection) (explanation.DisruptionInput, error) {
	c := connection.Client
	in := explanation.DisruptionInput{
		Operation: explanation.Operation(o.For), Name: o.Pod, Now: o.now(), Unread: map[permission.Resource]permission.Missing{},
	}
	query := cluster.Query{Namespace: connection.Namespace, Names: []string{o.Pod}, Whole: true, Budgets: true}
	if o.Node != "" {
		in.Operation, in.Name = explanation.Drain, o.Node
		query = cluster.Query{Node: o.Node, Whole: true, Budgets: true}
	}
	missing, err := o.readNode(ctx, c)
	if err != nil {
		return in, err
	}
	snapshot, err := cluster.Read(ctx, c, query)
	if err != nil {
		return in, err
	}
	if missing != nil && len(snapshot.Pods) == 0 {
		return in, exit.NoAccess(fmt.Errorf("node %s has no pods, and may not exist: %s; %s", o.Node, missing, missing.Fix()))
	}
	if err := snapshot.Require(permission.Pods, permission.Budgets); err != nil {
		return in, err
	}
	if err := snapshot.AbsentError(ctx, c, connection.Namespace); err != nil {
		return in, namesake(ctx, connection, o.Pod, err)
	}
	snapshot.Now = in.Now
	in.Pods, in.Budgets, in.Markers, in.Guards = snapshot.Pods, snapshot.Budgets, snapshot.Markers, probestatus.List(snapshot.Input).Guards
	for _, missing := range snapshot.Missing {
		in.Unread[missing.Resource] = missing
	}
	r := reading{reader: c, in: &explanation.Input{Unread: in.Unread}}
	switch in.Operation {
	case explanation.Delete:
		in.Policy = policyOf(ctx, &r, &admissionregistrationv1.ValidatingAdmissionPolicy{})
		in.Binding = policyOf(ctx, &r, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{})
	case explanation.Evict:
		if budgets := in.Selecting(in.Pods[0]); len(budgets) == 1 {
			// It selects the pod, so it is valid.
			selector, _ := metav1.LabelSelectorAsSelector(budgets[0].Spec.Selector)
			pods := &corev1.PodList{}
			r.note(c.List(ctx, pods, client.InNamespace(connection.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(maxObjects)),
				permission.Pods, "list", connection.Namespace)
			for i := range pods.Items {
				in.Others = append(in.Others, &pods.Items[i])
			}
		}
	}
	return in, r.err
}

// readNode returns an error if the node does not exist, or the permission that is missing to know this.
func (o *Options) readNode(ctx context.Context, c client.Client) (*permission.Missing, error) {
	if o.Node == "" {
		return nil, nil
	}
	err := c.Get(ctx, types.NamespacedName{Name: o.Node}, gather.NewNode())
	if apierrors.IsNotFound(err) {
		return nil, cluster.NotFound("node", o.Node, cluster.Names(ctx, c, corev1.SchemeGroupVersion.WithKind("Node"), ""), "")
	}
	return cluster.MissingOf(err, "get", permission.Nodes, "")
}

// policyOf reads the policy of guards or its binding. It returns nil if there is none.
func policyOf[T client.Object](ctx context.Context, r *reading, object T) (none T) {
	err := r.reader.Get(ctx, types.NamespacedName{Name: guard.Policy}, object)
	if apierrors.IsNotFound(err) || !r.note(err, explanation.Policies, "get", "") {
		return none
	}
	return object
}
