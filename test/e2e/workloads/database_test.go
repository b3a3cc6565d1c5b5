// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// successorAnnotation on the Lease names the replica that becomes the primary next.
const successorAnnotation = "example.com/successor"

// database is the database of examples/primary-secondary, with shorter times.
type database struct {
	*suite
	set *v1beta1.StatefulSet
	log *switchLog
	// random decides which faults are injected, and when.
	random *rand.Rand
}

// newDatabase creates the database and waits until it has a primary.
func newDatabase(t *testing.T) *database {
	t.Helper()
	d := &database{suite: newSuite(t), set: &v1beta1.StatefulSet{}, random: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))}
	folder := filepath.Join(d.Root, "examples", "primary-secondary")
	for _, file := range []string{"rbac.yaml", "marker.yaml"} {
		d.Kubectl("apply", "-f", filepath.Join(folder, file))
	}
	manifest, err := os.ReadFile(filepath.Join(folder, "statefulset.yaml"))
	cluster.Must(t, err)
	cluster.Must(t, yaml.UnmarshalStrict(manifest, d.set))
	container := &d.set.Spec.Template.Spec.Containers[0]
	// The times that a busy machine could exceed keep their defaults: those until a role is marked,
	// and until a lease is lost.
	container.Command = append(container.Command, "--lag", "500ms", "--retry", "200ms")
	container.Image = d.image(0)
	d.Create(d.set)
	d.log = d.watch()
	d.atRest()
	return d
}

// atRest waits until the replicas with the given properties are ready, the labels show their roles,
// no handover is pending, and the log has everything until then. A fault late in an update can move
// the role after it. atRest returns the version of that state.
func (d *database) atRest(wants ...func(*corev1.Pod) error) (version uint64) {
	d.Helper()
	d.Eventually("the database is at rest", func(ctx context.Context) error {
		lease, err := d.lease(ctx)
		if err != nil {
			return err
		}
		if successor := lease.Annotations[successorAnnotation]; successor != "" {
			return fmt.Errorf("%s is to become the primary", successor)
		}
		pods, err := d.pods(ctx, "database")
		if err != nil {
			return err
		}
		if len(pods) != 3 {
			return fmt.Errorf("%d pods, want 3", len(pods))
		}
		latest := uint64(0)
		for _, pod := range pods {
			latest = max(latest, versionOf(&pod))
			for _, want := range append(wants, ready, hasRole(ptr.Deref(lease.Spec.HolderIdentity, ""))) {
				if err := want(&pod); err != nil {
					return err
				}
			}
		}
		version = max(latest, versionOf(lease))
		if !d.log.has(version, latest) {
			return errors.New("the log does not have all changes")
		}
		if crashed := d.log.between(0, version).crashed; crashed != "" {
			return fmt.Errorf("%s has crashed and is still the primary", crashed)
		}
		return nil
	})
	return version
}

// hasRole expects that the label of a pod shows its role.
func hasRole(primary string) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		want := "secondary"
		if pod.Name == primary {
			want = "primary"
		}
		if got := pod.Labels["role"]; got != want {
			return fmt.Errorf("pod %s has role %q, want %q", pod.Name, got, want)
		}
		return nil
	}
}

// image returns the image of an update. Successive updates change the program, and no two have
// the same name.
func (d *database) image(update int) string {
	d.Helper()
	name := fmt.Sprintf("%s:%s-%d", databaseImage, d.Namespace, update)
	d.tag(fmt.Sprintf("%s:v%d", databaseImage, 1+update%2), name)
	return name
}

func labelled(key string) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		if pod.Labels[key] == "" {
			return fmt.Errorf("pod %s has no label %s", pod.Name, key)
		}
		return nil
	}
}

// watch records the changes of the database until the test ends.
func (d *database) watch() *switchLog {
	d.Helper()
	log := &switchLog{}
	d.stream(&coordinationv1.LeaseList{}, func(o ctrl.Object, _ bool) {
		if lease := o.(*coordinationv1.Lease); lease.Name == "database" {
			log.leaseChanged(lease)
		}
	})
	d.stream(&corev1.PodList{}, func(o ctrl.Object, deleted bool) { log.podChanged(o.(*corev1.Pod), deleted) })
	return log
}

// lease returns the Lease, which names the primary.
func (d *database) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	if err := d.Client.Get(ctx, d.Key("database"), lease); err != nil {
		return nil, err
	}
	if ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
		return nil, errors.New("no primary")
	}
	return lease, nil
}

// fault changes the role, or ends a replica, during an update. The Lease names the primary.
type fault func(ctx context.Context, d *database, lease *coordinationv1.Lease, secondary string) error

// handOver announces another primary.
func handOver(ctx context.Context, d *database, lease *coordinationv1.Lease, secondary string) error {
	base := lease.DeepCopy()
	lease.Annotations[successorAnnotation] = secondary
	return d.Client.Patch(ctx, lease, ctrl.MergeFrom(base))
}

// evict deletes the pod of the primary, as a drain of its node does.
func evict(ctx context.Context, d *database, lease *coordinationv1.Lease, _ string) error {
	return d.evict(ctx, *lease.Spec.HolderIdentity)
}

// evictSecondary deletes the pod of a secondary.
func evictSecondary(ctx context.Context, d *database, _ *coordinationv1.Lease, secondary string) error {
	return d.evict(ctx, secondary)
}

func (d *database) evict(ctx context.Context, name string) error {
	pod := &corev1.Pod{}
	if err := d.Client.Get(ctx, d.Key(name), pod); err != nil {
		return err
	}
	d.log.expects(pod.UID)
	return d.Client.Delete(ctx, pod)
}

// crash ends the process of the primary, which does not release the role.
func crash(ctx context.Context, d *database, lease *coordinationv1.Lease, _ string) error {
	pod := &corev1.Pod{}
	if err := d.Client.Get(ctx, d.Key(*lease.Spec.HolderIdentity), pod); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+pod.Status.PodIP+":8080/crash", nil)
	if err != nil {
		return err
	}
	d.log.crashes(lease)
	if response, err := http.DefaultTransport.RoundTrip(request); err == nil {
		// The process ends before it can answer.
		_ = response.Body.Close()
		return errors.New("the replica did not crash")
	}
	return nil
}

// inject runs a fault at a random time of an update. A fault that is not possible at that time is
// not injected.
func (d *database) inject(ctx context.Context, f fault, delay time.Duration) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(delay):
	}
	lease, err := d.lease(ctx)
	primary := ""
	if err == nil {
		primary = *lease.Spec.HolderIdentity
		secondaries := slices.DeleteFunc([]string{"database-0", "database-1", "database-2"}, func(name string) bool { return name == primary })
		err = f(ctx, d, lease, secondaries[d.random.IntN(len(secondaries))])
	}
	d.Logf("after %s: fault, primary %s: %v", delay.Round(100*time.Millisecond), primary, err)
}

// TestSwitchesOfThePrimary and TestSwitchesWithCrashes update a database 20 times in total, with role
// changes and crashes during the updates. No update ends the process of a primary more than once.
// These tests take the longest, so their file is one of the first: parallel tests start in this order.
func TestSwitchesOfThePrimary(t *testing.T) {
	t.Parallel()
	countSwitches(t, handOver, evict, evictSecondary, handOver, nil)
}

func TestSwitchesWithCrashes(t *testing.T) {
	t.Parallel()
	countSwitches(t, handOver, evict, crash, handOver, nil)
}

// countSwitches updates a database with each fault, and then again with each.
func countSwitches(t *testing.T, faults ...fault) {
	t.Helper()
	d := newDatabase(t)
	total, rest := 0, d.atRest()
	for i, f := range append(faults, faults...) {
		update, begun, before := i+1, time.Now(), rest
		rest = d.update(update, f)
		r := d.log.between(before, rest)
		total += r.caused
		d.Logf("update %d: %s, %d of %d switches by the update", update, time.Since(begun).Round(100*time.Millisecond), r.caused, len(r.switches))
		timeline := strings.Join(r.timeline, "\n")
		if r.caused > 1 {
			t.Errorf("update %d switched the primary %d times, want at most once:\n%s", update, r.caused, timeline)
		}
		if f == nil && len(r.switches) != 1 {
			t.Errorf("update %d without faults: %d switches, want one:\n%s", update, len(r.switches), timeline)
		}
		if len(r.deleted) != 0 {
			t.Errorf("update %d deleted pods that it updates in place: %v\n%s", update, r.deleted, timeline)
		}
	}
	if total == 0 {
		t.Error("no update switched the primary: the test observes nothing")
	}
}

// update changes the image, injects the fault if there is one, and returns the version at which the
// database is at rest again.
func (d *database) update(update int, f fault) (version uint64) {
	d.Helper()
	image := d.image(update)
	patch(d.suite, d.set, func(set *v1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = image })
	if f != nil {
		d.inject(d.Context(), f, time.Duration(d.random.IntN(5000))*time.Millisecond)
	}
	return d.atRest(runs(image))
}
