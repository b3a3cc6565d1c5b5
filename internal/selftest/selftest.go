// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selftest shows that an installation works: it makes a pod and a marker, waits
// until the pod carries the marks, deletes the marker and waits until they are off. The
// pod is a copy of the one that the test runs in, so that it needs no other image and no
// other permission to run.
package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

const (
	// pace is the time between two looks at the pod.
	pace = 200 * time.Millisecond
	// farewell is how long the deletion of what the test made may take.
	farewell = 20 * time.Second
)

// Options are what a self-test works with. All are required.
type Options struct {
	// Client reads and writes without a cache: pods and markers of the namespace, with the
	// verbs get, create and delete.
	Client client.Client
	// Namespace and Pod name the pod that the test runs in. Its first container is the one
	// that is copied.
	Namespace, Pod string
	// Program is the path of this program in the container.
	Program string
	// Out takes a line for each step.
	Out io.Writer
	// Now is the clock.
	Now func() time.Time
}

// Run runs the test. What it made it deletes, whatever comes. The error says which step the
// pod is stuck in.
func Run(ctx context.Context, options Options) (err error) {
	own := &corev1.Pod{}
	if err := options.Client.Get(ctx, client.ObjectKey{Namespace: options.Namespace, Name: options.Pod}, own); err != nil {
		return fmt.Errorf("reading the pod of the test, %s/%s: %w", options.Namespace, options.Pod, err)
	}
	if len(own.Spec.Containers) == 0 {
		return fmt.Errorf("pod %s/%s has no container to copy", options.Namespace, options.Pod)
	}
	t := &test{Options: options, pod: newPod(own), start: options.Now()}
	defer func() { err = errors.Join(err, t.clean(context.WithoutCancel(ctx))) }()
	return t.run(ctx)
}

// test is one run of the test.
type test struct {
	Options
	pod    *corev1.Pod
	marker *v1alpha1.PodProbeMarker
	start  time.Time
}

func (t *test) run(ctx context.Context) error {
	if err := t.Client.Create(ctx, t.pod); err != nil {
		return fmt.Errorf("creating the pod to mark: %w", err)
	}
	t.say("Created pod %s/%s.", t.pod.Namespace, t.pod.Name)
	if err := t.until(ctx, "run", running); err != nil {
		return err
	}
	t.say("It runs on node %s.", t.pod.Spec.NodeName)
	t.marker = newMarker(t.pod, t.Program)
	if err := t.Client.Create(ctx, t.marker); err != nil {
		return fmt.Errorf("creating the marker: %w", err)
	}
	t.say("Created PodProbeMarker %s.", t.marker.Name)
	if err := t.until(ctx, "be marked", marked); err != nil {
		return err
	}
	t.say("The pod has label %s=%s, and condition %s with message %q.",
		label, passed, conditionType, condition(t.pod).Message)
	if err := t.Client.Delete(ctx, t.marker); err != nil {
		return fmt.Errorf("deleting the marker: %w", err)
	}
	if err := t.until(ctx, "lose its marks", unmarked); err != nil {
		return err
	}
	t.say("Deleted the marker, and the marks are off. Seamark works.")
	return nil
}

// until waits until check finds nothing amiss with the pod.
func (t *test) until(ctx context.Context, what string, check func(*corev1.Pod) error) error {
	amiss := errors.New("not read yet")
	err := wait.PollUntilContextCancel(ctx, pace, true, func(ctx context.Context) (bool, error) {
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(t.pod), t.pod); err != nil {
			if ctx.Err() == nil {
				amiss = err
			}
			return false, nil
		}
		amiss = check(t.pod)
		return amiss == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for pod %s/%s to %s: %w: %w", t.pod.Namespace, t.pod.Name, what, context.Cause(ctx), amiss)
	}
	return nil
}

// clean deletes what the test made.
func (t *test) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	objects := []client.Object{t.pod}
	if t.marker != nil {
		objects = append(objects, t.marker)
	}
	var failed []error
	for _, object := range objects {
		if object.GetUID() == "" {
			continue
		}
		if err := t.Client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("deleting %s: %w", object.GetName(), err))
		}
	}
	return errors.Join(failed...)
}

func (t *test) say(format string, args ...any) {
	fmt.Fprintf(t.Out, "%6.1fs  %s\n", t.Now().Sub(t.start).Seconds(), fmt.Sprintf(format, args...))
}

func running(pod *corev1.Pod) error {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("it is %s: %s", pod.Status.Phase, reasons(pod))
}

func marked(pod *corev1.Pod) error {
	c := condition(pod)
	switch {
	case c == nil:
		return fmt.Errorf("it has no condition %s: see the logs of the managers, and of the agent on node %s", conditionType, pod.Spec.NodeName)
	case c.Status != corev1.ConditionTrue:
		return fmt.Errorf("its condition %s is %s: %s", conditionType, c.Status, c.Message)
	case pod.Labels[label] != passed:
		return fmt.Errorf("its label %s is %q, want %q", label, pod.Labels[label], passed)
	}
	return nil
}

func unmarked(pod *corev1.Pod) error {
	if _, found := pod.Labels[label]; found || condition(pod) != nil {
		return errors.New("it still has marks: see the logs of the managers")
	}
	return nil
}

func condition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == conditionType {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// reasons says why the pod's container doesn't run, as far as its status tells.
func reasons(pod *corev1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		if waiting := pod.Status.ContainerStatuses[i].State.Waiting; waiting != nil {
			return waiting.Reason + ": " + waiting.Message
		}
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Status == corev1.ConditionFalse && c.Message != "" {
			return c.Message
		}
	}
	return "no reason given"
}
