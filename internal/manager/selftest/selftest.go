// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selftest checks that an installation works: it creates a pod and a marker, waits
// until the pod is marked, deletes the marker and waits until the marks are removed. The pod
// is a copy of the pod that the test runs in, so it needs no other image and no other
// permissions.
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
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

const (
	pollInterval = 200 * time.Millisecond
	// cleanupTimeout is the timeout for deleting the objects of the test.
	cleanupTimeout = 20 * time.Second
)

// Options are the dependencies of a self-test. All are required.
type Options struct {
	// Client gets, creates and deletes pods and markers in the namespace, without a cache.
	Client client.Client
	// Namespace and Pod identify the pod that the test runs in. Its first container is copied.
	Namespace, Pod string
	// Program is the path of this executable in the container.
	Program string
	// Out receives a line for each step.
	Out io.Writer
	// Now is the clock.
	Now func() time.Time
}

// Run runs the test and always deletes the objects that it created. The error names the step
// that failed.
func Run(ctx context.Context, options Options) (err error) {
	own := &corev1.Pod{}
	if err := options.Client.Get(ctx, client.ObjectKey{Namespace: options.Namespace, Name: options.Pod}, own); err != nil {
		return fmt.Errorf("get the test's own pod %s/%s: %w", options.Namespace, options.Pod, err)
	}
	if len(own.Spec.Containers) == 0 {
		return fmt.Errorf("pod %s/%s has no containers", options.Namespace, options.Pod)
	}
	t := &test{Options: options, pod: newPod(own), start: options.Now()}
	defer func() { err = errors.Join(err, t.clean(context.WithoutCancel(ctx))) }()
	return t.run(ctx)
}

type test struct {
	Options
	pod    *corev1.Pod
	marker *v1alpha1.PodProbeMarker
	start  time.Time
}

func (t *test) run(ctx context.Context) error {
	if err := t.Client.Create(ctx, t.pod); err != nil {
		return fmt.Errorf("create the pod: %w", err)
	}
	t.say("Created pod %s/%s.", t.pod.Namespace, t.pod.Name)
	if err := t.until(ctx, "become ready", running); err != nil {
		return err
	}
	t.say("The pod is ready on node %s.", t.pod.Spec.NodeName)
	t.marker = newMarker(t.pod, t.Program)
	if err := t.Client.Create(ctx, t.marker); err != nil {
		return fmt.Errorf("create the marker: %w", err)
	}
	t.say("Created PodProbeMarker %s.", t.marker.Name)
	if err := t.until(ctx, "be marked", marked); err != nil {
		return err
	}
	t.say("The pod has label %s=%s, and condition %s with message %q.",
		label, passed, conditionType, condition(t.pod).Message)
	if err := t.Client.Delete(ctx, t.marker); err != nil {
		return fmt.Errorf("delete the marker: %w", err)
	}
	if err := t.until(ctx, "lose its marks", unmarked); err != nil {
		return err
	}
	t.say("Deleted the marker, and the marks are removed. Seamark works.")
	return nil
}

// until waits until check returns no error for the pod.
func (t *test) until(ctx context.Context, what string, check func(*corev1.Pod) error) error {
	lastErr := errors.New("not retrieved yet")
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(t.pod), t.pod); err != nil {
			if ctx.Err() == nil {
				lastErr = err
			}
			return false, nil
		}
		lastErr = check(t.pod)
		return lastErr == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for pod %s/%s to %s: %w: %w", t.pod.Namespace, t.pod.Name, what, context.Cause(ctx), lastErr)
	}
	return nil
}

// clean deletes the objects of the test.
func (t *test) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
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
			failed = append(failed, fmt.Errorf("delete %s: %w", object.GetName(), err))
		}
	}
	return errors.Join(failed...)
}

func (t *test) say(format string, args ...any) {
	fmt.Fprintf(t.Out, "%6.1fs  %s\n", t.Now().Sub(t.start).Seconds(), fmt.Sprintf(format, args...))
}

func running(pod *corev1.Pod) error {
	if planning.Ready(pod) {
		return nil
	}
	return fmt.Errorf("it is %s: %s", pod.Status.Phase, reasons(pod))
}

func marked(pod *corev1.Pod) error {
	c := condition(pod)
	switch {
	case c == nil:
		return fmt.Errorf("it has no condition %s: check the logs of the managers and of the agent on node %s", conditionType, pod.Spec.NodeName)
	case c.Status != corev1.ConditionTrue:
		return fmt.Errorf("its condition %s is %s: %s", conditionType, c.Status, c.Message)
	case pod.Labels[label] != passed:
		return fmt.Errorf("its label %s is %q, want %q", label, pod.Labels[label], passed)
	}
	return nil
}

func unmarked(pod *corev1.Pod) error {
	if _, found := pod.Labels[label]; found || condition(pod) != nil {
		return errors.New("it still has marks: check the logs of the managers")
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

// reasons returns why the pod's container is not running, according to its status.
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
