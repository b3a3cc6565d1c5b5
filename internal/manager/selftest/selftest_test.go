// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster acts as the kubelet and Seamark on every get of the pod.
type cluster struct {
	runs, marks, unmarks bool
}

func (c cluster) look(pod *corev1.Pod, marker bool) {
	if !c.runs {
		pod.Status.Phase = corev1.PodPending
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"},
		}}}
		return
	}
	pod.Spec.NodeName = "n1"
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if c.marks && (marker || !c.unmarks) {
		pod.Labels[label] = passed
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: conditionType, Status: corev1.ConditionTrue, Message: "hello"})
	}
}

func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		cluster cluster
		// wantErr is part of the error, or empty.
		wantErr string
	}{
		"everything works":      {cluster{runs: true, marks: true, unmarks: true}, ""},
		"pod does not start":    {cluster{}, "to become ready: out of time: it is Pending: ErrImagePull: no such image"},
		"no marks":              {cluster{runs: true}, "to be marked: out of time: it has no condition seamark.dev/selftest"},
		"marks are not removed": {cluster{runs: true, marks: true}, "to lose its marks: out of time: it still has marks"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, test.cluster)
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("out of time"))
				defer cancel()
				var out bytes.Buffer
				err := Run(ctx, Options{Client: c, Namespace: "ns", Pod: "own", Program: "/p", Out: &out, Now: time.Now})
				switch {
				case test.wantErr == "" && err != nil:
					t.Errorf("error %v after\n%s", err, out.String())
				case test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)):
					t.Errorf("error %v, want it to contain %q", err, test.wantErr)
				}
				checkClean(t, c)
			})
		})
	}
}

// checkClean checks that only the test's own pod is left.
func checkClean(t *testing.T, c client.Client) {
	t.Helper()
	var pods corev1.PodList
	var markers v1alpha1.PodProbeMarkerList
	expect.NoError(t, errors.Join(c.List(t.Context(), &pods), c.List(t.Context(), &markers)))
	if len(pods.Items) != 1 || len(markers.Items) != 0 {
		t.Errorf("%d pods and %d markers are left, want 1 and 0", len(pods.Items), len(markers.Items))
	}
}

func newClient(t *testing.T, c cluster) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	expect.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	own := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(own).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, under client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := under.Get(ctx, key, object, options...); err != nil {
				return err
			}
			if pod, ok := object.(*corev1.Pod); ok && key.Name != own.Name {
				err := under.Get(ctx, key, &v1alpha1.PodProbeMarker{})
				c.look(pod, err == nil)
			}
			return nil
		},
		Create: func(ctx context.Context, under client.WithWatch, object client.Object, options ...client.CreateOption) error {
			object.SetUID("uid")
			return under.Create(ctx, object, options...)
		},
	}).Build()
}

// TestPodCopiesOwnPod checks that the pod has the settings with which the test's own pod can run.
func TestPodCopiesOwnPod(t *testing.T) {
	user := int64(7)
	own := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns"},
		Spec: corev1.PodSpec{
			SecurityContext:  &corev1.PodSecurityContext{RunAsUser: &user},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "s"}},
			NodeSelector:     map[string]string{"a": "b"},
			Tolerations:      []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Image: "i@sha256:1", ImagePullPolicy: corev1.PullNever, Args: []string{"selftest"},
				SecurityContext: &corev1.SecurityContext{RunAsUser: &user},
			}},
		},
	}
	pod := newPod(own)
	container := pod.Spec.Containers[0]
	got := []any{
		pod.Namespace, pod.Spec.SecurityContext, pod.Spec.ImagePullSecrets, pod.Spec.NodeSelector, pod.Spec.Tolerations,
		container.Image, container.ImagePullPolicy, container.SecurityContext, container.Args,
	}
	want := []any{
		"ns", own.Spec.SecurityContext, own.Spec.ImagePullSecrets, own.Spec.NodeSelector, own.Spec.Tolerations,
		"i@sha256:1", corev1.PullNever, own.Spec.Containers[0].SecurityContext, []string{"selftest", "serve"},
	}
	expect.Equal(t, "pod", want, got)
}

func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- serve(ctx, listener) }()
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + listener.Addr().String())
	expect.NoError(t, err)
	defer response.Body.Close()
	if got, err := io.ReadAll(response.Body); err != nil || !strings.HasPrefix(string(got), "hello from ") {
		t.Errorf("response %q, %v", got, err)
	}
	cancel()
	expect.NoError(t, <-done)
}
