// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// replicas is the number of replicas of each database.
	replicas = 3
	newImage = "docker.io/seamark/example-database:v2"
	// successorAnnotation on a Lease names the next primary.
	successorAnnotation = "example.com/successor"
)

// roles runs the demo of examples/primary-secondary: one update of the same database in a
// StatefulSet of apps.kruise.io and in the built-in one.
type roles struct {
	out       io.Writer
	clientset kubernetes.Interface
	objects   client.Client
	// manifests holds the objects of both databases.
	manifests           []*unstructured.Unstructured
	kubectl, kubeconfig string

	timeline  *timeline
	followers map[string]*follower
}

// databases are the names of the StatefulSets, which are also those of their Leases and the label
// app of their pods. The order is that of the columns.
func databases() [2]string { return [2]string{"database", "database-builtin"} }

func readRoles(folder string) ([]*unstructured.Unstructured, error) {
	ours, err := readObjects(folder)
	if err != nil {
		return nil, err
	}
	builtin, err := readObjects(folder + "/built-in")
	return append(ours, builtin...), err
}

// play runs all steps. It returns an error if a step times out, or if the update of the first
// database did not switch its primary exactly once.
func (r *roles) play(ctx context.Context) error {
	say(r.out, "Apply the database twice, in a StatefulSet of apps.kruise.io/v1beta1 and in the built-in one")
	if err := r.clean(ctx); err != nil {
		return err
	}
	if err := applyObjects(ctx, r.objects, r.manifests); err != nil {
		return err
	}
	if err := r.follow(ctx); err != nil {
		return err
	}
	for _, name := range databases() {
		if err := r.prepare(ctx, name); err != nil {
			return err
		}
	}
	say(r.out, "Update the image of both")
	r.timeline.head(time.Now(), "apps.kruise.io/v1beta1 StatefulSet", "apps/v1 StatefulSet (built-in)")
	for _, name := range databases() {
		r.followers[name].restart()
		if err := r.update(ctx, name); err != nil {
			return err
		}
	}
	for _, name := range databases() {
		err := poll(ctx, func(context.Context) (bool, error) { return r.followers[name].updated(replicas, newImage), nil })
		if err != nil {
			return fmt.Errorf("wait for the update of %s: %w", name, err)
		}
	}
	say(r.out, "Result")
	_, ours := r.followers[databases()[0]].result()
	_, builtin := r.followers[databases()[1]].result()
	if err := conclude(r.out, ours, builtin); err != nil {
		return err
	}
	r.advise()
	return nil
}

// clean deletes the databases of an earlier run, with their counts of switches.
func (r *roles) clean(ctx context.Context) error {
	for _, object := range r.manifests {
		if object.GetKind() != "StatefulSet" {
			continue
		}
		if err := client.IgnoreNotFound(r.objects.Delete(ctx, object.DeepCopy())); err != nil {
			return fmt.Errorf("delete StatefulSet %s: %w", object.GetName(), err)
		}
	}
	for _, name := range databases() {
		err := poll(ctx, func(ctx context.Context) (bool, error) {
			pods, err := r.clientset.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
			if err != nil || len(pods.Items) != 0 {
				return false, err
			}
			err = r.clientset.CoordinationV1().Leases(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{})
			return err == nil || apierrors.IsNotFound(err), nil
		})
		if err != nil {
			return fmt.Errorf("wait for the end of the pods of %s: %w", name, err)
		}
	}
	return nil
}

// follow watches the pods and Leases of both databases until ctx ends.
func (r *roles) follow(ctx context.Context) error {
	r.timeline, r.followers = &timeline{out: r.out}, map[string]*follower{}
	for column, name := range databases() {
		r.followers[name] = newFollower(func(text string) { r.timeline.add(time.Now(), column, text) })
	}
	factory := informers.NewSharedInformerFactoryWithOptions(r.clientset, 0, informers.WithNamespace(metav1.NamespaceDefault))
	see := func(object any) {
		switch o := object.(type) {
		case *corev1.Pod:
			if f := r.followers[o.Labels["app"]]; f != nil {
				f.sees(o)
			}
		case *coordinationv1.Lease:
			if f := r.followers[o.Name]; f != nil && o.Spec.HolderIdentity != nil {
				f.holds(*o.Spec.HolderIdentity)
			}
		}
	}
	for _, informer := range []cache.SharedIndexInformer{factory.Core().V1().Pods().Informer(), factory.Coordination().V1().Leases().Informer()} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: see, UpdateFunc: func(_, object any) { see(object) },
		}); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
	}
	factory.StartWithContext(ctx)
	return nil
}

// prepare waits until a database is ready, and hands the role to its highest ordinal, so that
// both databases start with the same primary.
func (r *roles) prepare(ctx context.Context, name string) error {
	last := ""
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		pods, err := r.clientset.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{
			LabelSelector: labels.Set{"app": name}.String(),
		})
		if err != nil {
			return false, fmt.Errorf("list pods: %w", err)
		}
		ready := 0
		for i := range pods.Items {
			if isReady(&pods.Items[i]) {
				ready++
			}
		}
		last = fmt.Sprintf("%d of %d ready", ready, replicas)
		return ready == replicas, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the replicas of %s, %s: %w", name, last, err)
	}
	highest := fmt.Sprintf("%s-%d", name, replicas-1)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, successorAnnotation, highest)
	if err := r.objects.Patch(ctx, lease, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("announce the successor of %s: %w", name, err)
	}
	err = poll(ctx, func(context.Context) (bool, error) {
		primary, _ := r.followers[name].result()
		return primary == highest, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the primary %s: %w", highest, err)
	}
	fmt.Fprintf(r.out, "    %s: %s, the primary is %s\n", name, last, highest)
	return nil
}

// update changes the image of a StatefulSet.
func (r *roles) update(ctx context.Context, name string) error {
	for _, object := range r.manifests {
		if object.GetKind() != "StatefulSet" || object.GetName() != name {
			continue
		}
		patch := fmt.Appendf(nil, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, newImage)
		if err := r.objects.Patch(ctx, object.DeepCopy(), client.RawPatch(types.JSONPatchType, patch)); err != nil {
			return fmt.Errorf("update StatefulSet %s: %w", name, err)
		}
	}
	return nil
}

// conclude prints the result. It returns an error unless the update switched the primary once.
func conclude(out io.Writer, ours, builtin int) error {
	if ours != 1 {
		return fmt.Errorf("the update by priority switched %d times, want once", ours)
	}
	fmt.Fprintf(out, `    The probe "primary" labels each pod with its role. The StatefulSet of apps.kruise.io/v1beta1
    updated the secondaries first, and the primary switched once. The built-in StatefulSet, which
    replaces the highest ordinal first, switched %d times.
`, builtin)
	return nil
}

// advise prints commands to try next.
func (r *roles) advise() {
	say(r.out, "Next steps")
	fmt.Fprintf(r.out, "    export KUBECONFIG=%s\n", r.kubeconfig)
	for _, args := range []string{
		"get pods -L role",
		"get leases -o custom-columns=NAME:.metadata.name,PRIMARY:.spec.holderIdentity,SWITCHES:.spec.leaseTransitions",
		"annotate lease database " + successorAnnotation + "=database-0",
		"get statefulsets.apps.kruise.io database -o yaml",
	} {
		fmt.Fprintf(r.out, "    %s %s\n", r.kubectl, args)
	}
	fmt.Fprintln(r.out, "    make demo-down")
}
