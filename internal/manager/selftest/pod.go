// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/serving"
)

const (
	// prefix of the names of the pod and its marker.
	prefix = "seamark-selftest-"
	// runLabel distinguishes the pods of different runs.
	runLabel = "seamark.dev/selftest-run"
	// label is set to passed by the httpGet probe.
	label  = "seamark.dev/selftest"
	passed = "passed"
	// conditionType is set by the exec probe.
	conditionType corev1.PodConditionType = "seamark.dev/selftest"
	// port that the pod listens on.
	port = 8080
	// lifetime of the pod in seconds, in case nothing deletes it.
	lifetime = 900
)

// newPod returns the pod to mark. It runs the image of the first container of the test's own
// pod as an HTTP server.
func newPod(own *corev1.Pod) *corev1.Pod {
	name := prefix + rand.String(6)
	container := own.Spec.Containers[0]
	seconds, none, no := int64(lifetime), int64(0), false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: own.Namespace,
			Name:      name,
			Labels: map[string]string{
				"app.kubernetes.io/name":      "seamark",
				"app.kubernetes.io/component": "selftest",
				runLabel:                      name,
			},
		},
		Spec: corev1.PodSpec{
			ActiveDeadlineSeconds:         &seconds,
			TerminationGracePeriodSeconds: &none,
			AutomountServiceAccountToken:  &no,
			RestartPolicy:                 corev1.RestartPolicyAlways,
			SecurityContext:               own.Spec.SecurityContext,
			ImagePullSecrets:              own.Spec.ImagePullSecrets,
			NodeSelector:                  own.Spec.NodeSelector,
			Tolerations:                   own.Spec.Tolerations,
			Containers: []corev1.Container{{
				Name:            "serve",
				Image:           container.Image,
				ImagePullPolicy: container.ImagePullPolicy,
				Args:            []string{"selftest", "serve"},
				Ports:           []corev1.ContainerPort{{Name: "http", ContainerPort: port}},
				SecurityContext: container.SecurityContext,
				Resources:       container.Resources,
				ReadinessProbe: &corev1.Probe{
					ProbeHandler:  get(intstr.FromString("http")),
					PeriodSeconds: 1,
				},
			}},
		},
	}
}

// newMarker returns the marker of the pod: an exec probe that sets the condition, and an
// httpGet probe that sets the label.
func newMarker(pod *corev1.Pod, program string) *v1alpha1.PodProbeMarker {
	const container = "serve"
	return &v1alpha1.PodProbeMarker{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels},
		Spec: v1alpha1.PodProbeMarkerSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{runLabel: pod.Labels[runLabel]}},
			Probes: []v1alpha1.PodContainerProbe{{
				Name: "exec", ContainerName: container, PodConditionType: string(conditionType),
				Probe: every(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{program, "selftest", "ask"}}}),
			}, {
				Name: "http", ContainerName: container,
				Probe: every(get(intstr.FromString("http"))),
				MarkerPolicy: []v1alpha1.ProbeMarkerPolicy{
					{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{label: passed}},
				},
			}},
		},
	}
}

func get(port intstr.IntOrString) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: port}}
}

// every returns a probe that runs every second, with a timeout that allows for a slow process
// start.
func every(handler corev1.ProbeHandler) v1alpha1.ContainerProbeSpec {
	return v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{ProbeHandler: handler, PeriodSeconds: 1, TimeoutSeconds: 10}}
}

// Serve runs in the marked pod. It responds to every request as Greet does, until the context ends.
func Serve(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return serve(ctx, listener)
}

func serve(ctx context.Context, listener net.Listener) error {
	greet := func(w http.ResponseWriter, _ *http.Request) {
		if err := Greet(w); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
	return serving.Serve(ctx, listener, http.HandlerFunc(greet), serving.Options{})
}

// Greet is the exec probe. It writes the name of the pod that it runs in.
func Greet(out io.Writer) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("get the name of the pod: %w", err)
	}
	_, err = fmt.Fprintf(out, "hello from %s", host)
	return err
}
