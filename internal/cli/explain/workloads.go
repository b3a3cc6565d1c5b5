// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/internal/cli/target"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// setKinds returns the names of the kinds of apps.kruise.io whose objects are explained by what they wait for.
func setKinds() []string {
	var names []string
	for _, kind := range kinds.Table() {
		names = append(names, strings.ToLower(kind.Kind))
	}
	return names
}

// explainWorkload explains a set or a job.
func (o *Options) explainWorkload(ctx context.Context, connection cluster.Connection, kind *kinds.Kind, name string) error {
	in, err := o.readWorkload(ctx, connection, kind, name)
	if err != nil {
		return err
	}
	return o.printSettled(explanation.Workload(in))
}

// printSettled prints the explanation. The error of an object that is not settled does not repeat why.
func (o *Options) printSettled(x explanation.WorkloadExplanation) error {
	if err := o.print(x, x.Answer); err != nil {
		return exit.Failure(err)
	}
	if !x.Settled {
		return exit.Failure(fmt.Errorf("%s %s is not settled", x.Kind, x.Name))
	}
	return nil
}

// readWorkload reads everything that the state of a set or a job depends on, as far as the user may.
func (o *Options) readWorkload(ctx context.Context, connection cluster.Connection, kind *kinds.Kind, name string) (explanation.WorkloadInput, error) {
	in := explanation.WorkloadInput{
		Kind: kind.Kind, SystemNamespace: o.SeamarkNamespace, Now: o.now(), Program: o.program,
		Unread: map[permission.Resource]permission.Missing{},
	}
	namespace, object := connection.Namespace, kind.New()
	if kind.ClusterScoped {
		namespace = ""
	}
	if err := target.New(connection, kind, namespace, name).Read(ctx, object); err != nil {
		return in, err
	}
	in.Object = object
	r := reading{reader: connection.Client, in: &explanation.Input{Namespace: namespace, Name: name, SystemNamespace: o.SeamarkNamespace, Unread: in.Unread}}
	r.lease(ctx, workloadsLease)
	if kind.PerNode {
		readAll(ctx, &r, &corev1.NodeList{}, permission.Nodes, "", func(node *corev1.Node) { in.Nodes = append(in.Nodes, node) })
	}
	if kind.CreatesPods() {
		readAll(ctx, &r, &corev1.PodList{}, permission.Pods, namespace, func(pod *corev1.Pod) { in.Pods = append(in.Pods, pod) })
	}
	if kind.Role == kinds.Job && !kind.CreatesPods() {
		r.events(ctx)
		in.Jobs = r.jobs(ctx, object)
	}
	in.Lease, in.Events = r.in.Lease, r.in.Events
	return in, r.err
}

// readAll lists objects, and notes a missing permission.
func readAll[T client.Object](ctx context.Context, r *reading, list client.ObjectList, resource permission.Resource, namespace string, take func(T)) {
	r.note(cluster.Each(ctx, r.reader, list, take, client.InNamespace(namespace)), resource, "list", namespace)
}
