// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// databaseImage is the image of the example database. Its versions v1 and v2 have different IDs, as
// those of a new build have. An update in place to another name of the same ID takes longer.
const databaseImage = "docker.io/seamark/example-database"

// TestSwitchesOfThePrimary updates the database of examples/primary-secondary in place. Each update
// switches the primary once, and deletes no pod. FuzzOneSwitch in internal/workloads/statefulset
// checks this for a database whose role moves and whose pods crash meanwhile.
func TestSwitchesOfThePrimary(t *testing.T) {
	t.Parallel()
	s, set := newSuite(t), &v1beta1.StatefulSet{}
	folder := filepath.Join(s.Root, "examples", "primary-secondary")
	for _, file := range []string{"rbac.yaml", "marker.yaml"} {
		s.Kubectl("apply", "-f", filepath.Join(folder, file))
	}
	manifest, err := os.ReadFile(filepath.Join(folder, "statefulset.yaml"))
	cluster.Must(t, err)
	cluster.Must(t, yaml.UnmarshalStrict(manifest, set))
	container := &set.Spec.Template.Spec.Containers[0]
	// The times that a busy machine could exceed keep their defaults: those until a role is marked,
	// and until a lease is lost.
	container.Command = append(container.Command, "--lag", "500ms", "--retry", "200ms")
	// Pods that are not ready are updated at once. A busy machine may answer after the default of a second.
	container.ReadinessProbe.TimeoutSeconds = 10
	container.Image = s.databaseImage(0)
	s.Create(set)
	switches, pods := s.databaseIsAtRest(container.Image), map[string]*corev1.Pod{}
	for i := range 3 {
		name := fmt.Sprintf("database-%d", i)
		pods[name] = s.get(name)
	}
	for update := 1; update <= 3; update++ {
		image := s.databaseImage(update)
		patch(s, set, func(set *v1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = image })
		now := s.databaseIsAtRest(image)
		if now != switches+1 {
			t.Errorf("update %d switched the primary %d times, want once", update, now-switches)
		}
		switches = now
	}
	for name, pod := range pods {
		if s.get(name).UID != pod.UID {
			t.Errorf("pod %s was replaced, want it updated in place", name)
		}
	}
}

// databaseIsAtRest waits until the replicas run the image and are ready, and their labels show their
// roles. It returns how often the primary has switched.
func (s *suite) databaseIsAtRest(image string) (switches int32) {
	s.Helper()
	s.Eventually("the database is at rest", func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := s.Client.Get(ctx, s.Key("database"), lease); err != nil {
			return err
		}
		if successor := lease.Annotations["example.com/successor"]; successor != "" {
			return fmt.Errorf("%s is to become the primary", successor)
		}
		primary := ptr.Deref(lease.Spec.HolderIdentity, "")
		pods, err := s.pods(ctx, "database")
		if err == nil && (len(pods) != 3 || primary == "") {
			err = fmt.Errorf("%d pods, want 3, and primary %q", len(pods), primary)
		}
		if err != nil {
			return err
		}
		for _, pod := range pods {
			for _, want := range []func(*corev1.Pod) error{ready, runs(image), hasRole(primary)} {
				if err := want(&pod); err != nil {
					return err
				}
			}
		}
		switches = ptr.Deref(lease.Spec.LeaseTransitions, 0)
		return nil
	})
	return switches
}

// hasRole expects that the label of a pod shows its role.
func hasRole(primary string) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		want := "secondary"
		if pod.Name == primary {
			want = "primary"
		}
		got := pod.Labels["role"]
		return await.ErrorIf(got != want, "pod %s has role %q, want %q", pod.Name, got, want)
	}
}

// databaseImage returns the image of an update. Successive updates change the program, and no two
// have the same name.
func (s *suite) databaseImage(update int) string {
	s.Helper()
	name := fmt.Sprintf("%s:%s-%d", databaseImage, s.Namespace, update)
	s.tag(fmt.Sprintf("%s:v%d", databaseImage, 1+update%2), name)
	return name
}
