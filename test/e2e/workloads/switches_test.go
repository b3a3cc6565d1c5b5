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
	d := &database{suite: newSuite(t), set: &v1beta1.StatefulSet{}, random: rand.New(rand.NewPCG(1, uint64(os.Getpid())))}
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
// and no handover is pending: a fault late in an update can move the role after it.
func (d *database) atRest(wants ...func(*corev1.Pod) error) {
	d.Helper()
	d.settled("database", 3, wants...)
	d.Eventually("the labels show the roles", func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := d.Client.Get(ctx, d.Key("database"), lease); err != nil {
			return err
		}
		if successor := lease.Annotations[successorAnnotation]; successor != "" {
			return fmt.Errorf("%s is to become the primary", successor)
		}
		pods, err := d.pods(ctx, "database")
		if err != nil {
			return err
		}
		for name, pod := range pods {
			want := "secondary"
			if name == ptr.Deref(lease.Spec.HolderIdentity, "") {
				want = "primary"
			}
			if got := pod.Labels["role"]; got != want {
				return fmt.Errorf("pod %s has role %q, want %q", name, got, want)
			}
		}
		return nil
	})
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

// watch records the switches of the primary until the test ends.
func (d *database) watch() *switchLog {
	d.Helper()
	log := newSwitchLog()
	for _, list := range []ctrl.ObjectList{&coordinationv1.LeaseList{}, &corev1.PodList{}} {
		d.stream(list, func(o ctrl.Object, deleted bool) {
			switch o := o.(type) {
			case *coordinationv1.Lease:
				if o.Name == "database" && o.Spec.HolderIdentity != nil {
					log.holds(*o.Spec.HolderIdentity, o.Annotations[successorAnnotation], time.Now())
				}
			case *corev1.Pod:
				log.sees(o, deleted)
			}
		})
	}
	return log
}

// primary returns the name of the primary.
func (d *database) primary(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	if err := d.Client.Get(ctx, d.Key("database"), lease); err != nil {
		return "", err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.New("no primary")
	}
	return *lease.Spec.HolderIdentity, nil
}

// fault changes the role, or ends a replica, during an update.
type fault func(ctx context.Context, d *database, primary, secondary string) error

// handOver announces another primary.
func handOver(ctx context.Context, d *database, _, secondary string) error {
	lease := &coordinationv1.Lease{}
	if err := d.Client.Get(ctx, d.Key("database"), lease); err != nil {
		return err
	}
	base := lease.DeepCopy()
	lease.Annotations[successorAnnotation] = secondary
	return d.Client.Patch(ctx, lease, ctrl.MergeFrom(base))
}

// evict deletes the pod of the primary, as a drain of its node does.
func evict(ctx context.Context, d *database, primary, _ string) error { return d.evict(ctx, primary) }

// evictSecondary deletes the pod of a secondary.
func evictSecondary(ctx context.Context, d *database, _, secondary string) error {
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
func crash(ctx context.Context, d *database, primary, _ string) error {
	pod := &corev1.Pod{}
	if err := d.Client.Get(ctx, d.Key(primary), pod); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+pod.Status.PodIP+":8080/crash", nil)
	if err != nil {
		return err
	}
	d.log.crashes(primary)
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
	primary, err := d.primary(ctx)
	if err == nil {
		secondaries := slices.DeleteFunc([]string{"database-0", "database-1", "database-2"}, func(name string) bool { return name == primary })
		err = f(ctx, d, primary, secondaries[d.random.IntN(len(secondaries))])
	}
	d.Logf("after %s: fault, primary %s: %v", delay.Round(100*time.Millisecond), primary, err)
}

// TestSwitchesOfThePrimary updates the database 20 times, with role changes and crashes during
// the updates. No update ends the process of a primary more than once.
func TestSwitchesOfThePrimary(t *testing.T) {
	t.Parallel()
	const updates = 20
	d := newDatabase(t)
	total := 0
	for update := 1; update <= updates; update++ {
		faults := []fault{nil, handOver, evict, evictSecondary, handOver}
		f := faults[update%len(faults)]
		if update == 3 || update == 8 {
			f = crash
		}
		begun, image := time.Now(), d.image(update)
		d.log.begin()
		patch(d.suite, d.set, func(set *v1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = image })
		if f != nil {
			d.inject(t.Context(), f, time.Duration(d.random.IntN(5000))*time.Millisecond)
		}
		d.atRest(runs(image))
		caused, all := d.log.end()
		total += caused
		d.Logf("update %d: %s, %d of %d switches by the update", update, time.Since(begun).Round(100*time.Millisecond), caused, len(all))
		if caused > 1 {
			t.Errorf("update %d switched the primary %d times, want at most once: %v", update, caused, all)
		}
		if f == nil && len(all) != 1 {
			t.Errorf("update %d without faults: switches %v, want one", update, all)
		}
	}
	if total == 0 {
		t.Error("no update switched the primary: the test observes nothing")
	}
	if unexpected := d.log.unexpected(); len(unexpected) != 0 {
		t.Errorf("pods were deleted in an update in place: %v", unexpected)
	}
}
