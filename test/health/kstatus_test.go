// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// broken is the image of containers that never become ready.
const broken = "image:broken"

// runs reports whether the pod becomes ready.
func runs(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Image != broken }

// stage is a state of an object after a change.
type stage struct {
	name string
	// change is a merge patch of the specification.
	change string
	// passes are the statuses of the versions that are stored after the change, without repetitions.
	passes []status.Status
	// says is the message of the last one, for the kind.
	says map[string]string
}

// stages returns the changes of a set, in order. The formats are for what pauses the update, and for the partition that lets it reach no
// pod or a part of them.
func stages(paused, partition string) []stage {
	image := func(image string) string {
		return fmt.Sprintf(`template: {spec: {containers: [{name: main, image: "%s"}]}}`, image)
	}
	strategy := func(fields string) string { return "updateStrategy: " + fmt.Sprintf(paused, fields) }
	done := []status.Status{status.InProgressStatus, status.CurrentStatus}
	return []stage{
		{"updated", image("image:2"), done, nil},
		{"paused", image("image:3") + ", " + strategy("paused: true"), []status.Status{status.InProgressStatus}, map[string]string{
			"CloneSet": "the update is paused: 0 of 3 pods are updated", "StatefulSet": "the update is paused: 0 of 3 pods are updated",
			"DaemonSet": "the update is paused: 0 of 1 pods are updated",
		}},
		{"partition reached", strategy("paused: false, partition: " + partition), done, nil},
		{
			"deadline exceeded", image(broken) + ", progressDeadlineSeconds: 2, " + strategy("partition: 0"),
			[]status.Status{status.InProgressStatus, status.FailedStatus}, nil,
		},
		{"still exceeded", "revisionHistoryLimit: 5", []status.Status{status.InProgressStatus, status.FailedStatus}, nil},
		{"corrected", image("image:4"), done, nil},
		{"deadline removed", "progressDeadlineSeconds: null", done, nil},
	}
}

// TestKstatus runs the library by which Helm and Flux wait for objects with every stored version of the sets of each kind in all
// phases. They are created while the controllers do not run.
func TestKstatus(t *testing.T) {
	world := newWorld(t, runs)
	sets := map[string]struct {
		version, spec string
		stages        []stage
	}{
		"CloneSet":    {"v1alpha1", "{replicas: 3, template: " + template + "}", stages("{%s}", "2")},
		"StatefulSet": {"v1beta1", "{replicas: 3, template: " + template + "}", stages("{rollingUpdate: {%s}}", "2")},
		"DaemonSet":   {"v1alpha1", "{template: " + template + "}", stages("{rollingUpdate: {%s}}", "1")},
	}
	objects := map[string]*unstructured.Unstructured{}
	for kind, set := range sets {
		object := world.object(t, kind, set.version, set.spec)
		expect.NoError(t, world.Client.Create(t.Context(), object))
		observed, _, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
		expect.NoError(t, err)
		expect.Equal(t, kind+": observed generation in the answer to its creation", -1, observed)
		expect.NoError(t, world.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		expect.Equal(t, kind+": status without controllers", status.InProgressStatus, statusOf(t, object).Status)
		objects[kind] = object
	}
	world.run(t)
	for kind, set := range sets {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			world.stages(t, objects[kind], set.stages)
		})
	}
}

// statusOf returns what the library says about an object.
func statusOf(t *testing.T, object *unstructured.Unstructured) *status.Result {
	t.Helper()
	result, err := status.Compute(object)
	expect.NoError(t, err)
	return result
}

// stages takes a set through its stages.
func (w *world) stages(t *testing.T, object *unstructured.Unstructured, stages []stage) {
	t.Helper()
	var mu sync.Mutex
	passed := map[int64][]status.Status{} // By the generation.
	w.follow(t, object, func(stored *unstructured.Unstructured) error {
		result, err := status.Compute(stored)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		all := passed[stored.GetGeneration()]
		if len(all) == 0 || all[len(all)-1] != result.Status {
			passed[stored.GetGeneration()] = append(all, result.Status)
		}
		return nil
	})
	// The statuses of a set that existed before are not complete.
	reaches := func(stage stage) {
		want := stage.passes
		env.WorldOf(t, w.Env, object.GetNamespace()).Shows(object, stage.name, func() error {
			mu.Lock()
			defer mu.Unlock()
			got := passed[object.GetGeneration()]
			result, err := status.Compute(object)
			if err == nil && (!slices.Equal(got, want) || result.Status != want[len(want)-1]) {
				return fmt.Errorf("statuses %v, now %+v, want %v", got, result, want)
			}
			if says := stage.says[object.GetKind()]; err == nil && says != "" && result.Message != says {
				return fmt.Errorf("message %q, want %q", result.Message, says)
			}
			return err
		})
		t.Logf("%s: %v, %s", stage.name, want, statusOf(t, object).Message)
	}
	env.WorldOf(t, w.Env, object.GetNamespace()).Shows(object, "the new set is available", func() error {
		if result := statusOf(t, object); result.Status != status.CurrentStatus {
			return fmt.Errorf("status %+v", result)
		}
		return nil
	})
	for _, stage := range stages {
		patch, err := yaml.YAMLToJSON([]byte("spec: {" + stage.change + "}"))
		expect.NoError(t, err)
		expect.NoError(t, w.Client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
		reaches(stage)
	}
}
