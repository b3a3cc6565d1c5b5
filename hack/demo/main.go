// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo demonstrates Seamark on a cluster where it is installed, with the commands of a user.
// It starts the game servers of examples/game-server, shows their probes, scales their Deployment
// down, and checks that no match is interrupted. With -roles, it updates the database of
// examples/primary-secondary next to the same database in the built-in StatefulSet, and prints how
// often the primary of each switches. With -guard, it drains the node of a server that plays a match,
// deletes the server, and updates its Deployment, and checks that all of them wait for the match.
//
// It runs in the root of the repository. kubectl and kubectl-seamark must be in the PATH.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	typedcoordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

// run parses the flags, connects to the cluster, and runs a demo in the namespace of the kubeconfig.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	showRoles := flags.Bool("roles", false, "update a database instead of scaling game servers down")
	showGuard := flags.Bool("guard", false, "try to disrupt a busy game server instead of scaling game servers down; needs two nodes")
	typing := flags.Bool("typing", false, "type the commands at the speed of a user, for a recording")
	if err := flags.Parse(args); err != nil {
		return err
	}
	settings := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{})
	config, err := settings.ClientConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	namespace, _, err := settings.Namespace()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	shell := &shell{out: os.Stdout, typing: *typing, run: system}
	if *showRoles {
		r := &roles{shell: shell, pods: clientset.CoreV1().Pods(namespace), leases: clientset.CoordinationV1().Leases(namespace)}
		return r.play(ctx)
	}
	s := &servers{shell: shell, pods: clientset.CoreV1().Pods(namespace)}
	if *showGuard {
		return (&match{servers: s}).play(ctx)
	}
	return s.play(ctx)
}

const (
	rolesFiles = " -f examples/primary-secondary -f examples/primary-secondary/built-in"
	newImage   = "docker.io/seamark/example-database:v2"
	// replicas is the number of replicas of each database.
	replicas = 3
	// look is the polling interval of the timeline.
	look = 200 * time.Millisecond
	// columnWidth is the width of a column of the timeline.
	columnWidth = 42
)

// databases are the names of the StatefulSets of apps.kruise.io and of apps, which are also those of
// their Leases and the label app of their pods.
func databases() [2]string { return [2]string{"database", "database-builtin"} }

// roles is the demo of the databases: one update of the same database in a StatefulSet of
// apps.kruise.io and in the built-in one.
type roles struct {
	*shell
	pods   typedcore.PodInterface
	leases typedcoordination.LeaseInterface
}

// play runs all steps on a cluster from which it removes the example first. It returns an error
// unless the update of the first database switches its primary exactly once.
func (r *roles) play(ctx context.Context) error {
	if err := r.run(ctx, "kubectl delete --ignore-not-found --cascade=foreground"+rolesFiles+
		" && kubectl delete --ignore-not-found lease database database-builtin", io.Discard); err != nil {
		return err
	}
	r.scene("The same database twice: in a StatefulSet of apps.kruise.io/v1beta1 and in the built-in one.")
	for _, line := range []string{
		"kubectl apply" + rolesFiles,
		"kubectl wait statefulset.apps.kruise.io/database --for=jsonpath='{.status.readyReplicas}'=3 --timeout=2m",
		"kubectl rollout status statefulset.apps/database-builtin --timeout=2m",
	} {
		if err := r.command(ctx, line); err != nil {
			return err
		}
	}
	r.scene("Both start with the same primary: the highest ordinal.")
	for _, name := range databases() {
		highest := fmt.Sprintf("%s-%d", name, replicas-1)
		line := fmt.Sprintf("kubectl annotate --overwrite lease %[1]s example.com/successor=%[2]s && "+
			"kubectl wait lease/%[1]s --for=jsonpath='{.spec.holderIdentity}'=%[2]s --timeout=1m", name, highest)
		if err := r.command(ctx, line); err != nil {
			return err
		}
	}
	r.scene("Update the image of both.")
	before, err := r.read(ctx)
	if err != nil {
		return err
	}
	err = r.command(ctx, `kubectl patch statefulset.apps.kruise.io/database --type json -p '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"`+
		newImage+`"}]' && kubectl set image statefulset.apps/database-builtin database=`+newImage)
	if err != nil {
		return err
	}
	after, err := r.follow(ctx, before)
	if err != nil {
		return err
	}
	return conclude(r.out, after[0].switches-before[0].switches, after[1].switches-before[1].switches)
}

type database struct {
	// switches is how often the primary has switched.
	switches int32
	// states holds what the timeline shows, by name: a pod, or primary.
	states map[string]string
	// updated is the number of pods that are ready with the new image.
	updated int
}

// read returns the current states, in the order of the columns.
func (r *roles) read(ctx context.Context) (found [2]database, err error) {
	for i, name := range databases() {
		pods, err := r.pods.List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return found, fmt.Errorf("list the pods of %s: %w", name, err)
		}
		lease, err := r.leases.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return found, fmt.Errorf("get the lease of %s: %w", name, err)
		}
		found[i] = describe(pods.Items, lease)
	}
	return found, nil
}

func describe(pods []corev1.Pod, lease *coordinationv1.Lease) database {
	d := database{switches: ptr.Deref(lease.Spec.LeaseTransitions, 0), states: map[string]string{"primary": "is released"}}
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != "" {
		d.states["primary"] = "is " + holder
	}
	for i := range pods {
		switch pod := &pods[i]; {
		case pod.DeletionTimestamp != nil:
			d.states[pod.Name] = "is deleted"
		case !isReady(pod):
			d.states[pod.Name] = "is not ready"
		default:
			// The image of the status is that of the running container, which an update in place replaces later.
			image := pod.Status.ContainerStatuses[0].Image
			d.states[pod.Name] = "is ready, " + image[strings.LastIndexByte(image, ':')+1:]
			if image == newImage {
				d.updated++
			}
		}
	}
	return d
}

// follow prints what changes until both databases are updated, and returns their states.
func (r *roles) follow(ctx context.Context, last [2]database) (now [2]database, err error) {
	begun := time.Now()
	fmt.Fprintf(r.out, "    %-8s %-*s%s\n", "TIME", columnWidth, "apps.kruise.io/v1beta1 StatefulSet", "apps/v1 StatefulSet (built-in)")
	err = wait.PollUntilContextTimeout(ctx, look, patience, true, func(ctx context.Context) (bool, error) {
		if now, err = r.read(ctx); err != nil {
			return false, err
		}
		for column := range now {
			for _, text := range changes(last[column].states, now[column].states) {
				fmt.Fprintf(r.out, "    %-8s %*s%s\n", fmt.Sprintf("+%.1fs", time.Since(begun).Seconds()), column*columnWidth, "", text)
			}
		}
		last = now
		return now[0].updated == replicas && now[1].updated == replicas, nil
	})
	if err != nil {
		return now, fmt.Errorf("wait for the updates, %d and %d replicas: %w", now[0].updated, now[1].updated, err)
	}
	return now, nil
}

// changes returns the states that are not in last, in the order of their names.
func changes(last, now map[string]string) []string {
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if now[name] != last[name] {
			changed = append(changed, name+" "+now[name])
		}
	}
	return changed
}

// conclude prints the result. It returns an error unless the update switched the primary once.
func conclude(out io.Writer, ours, builtin int32) error {
	if ours != 1 {
		return fmt.Errorf("the update by priority switched %d times, want once", ours)
	}
	fmt.Fprintf(out, `
==> Result
    The probe "primary" labels each pod with its role. The StatefulSet of apps.kruise.io/v1beta1
    updated the secondaries first, and the primary switched once. The built-in StatefulSet, which
    replaces the highest ordinal first, switched %d times.
`, builtin)
	return nil
}
