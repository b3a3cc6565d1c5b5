// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

const (
	// systemNamespace is where `make install` puts Seamark.
	systemNamespace = "seamark-system"
	// busyboxImage is preloaded on every cluster that hack/cluster makes.
	busyboxImage = "docker.io/library/busybox:1.35"
	// targetImage holds test/e2e/target.
	targetImage = "docker.io/seamark/probe-target:dev"
	// settle is the longest that a test waits for anything on a loaded machine. No
	// test that passes comes near it.
	settle = 90 * time.Second
)

// suite is what one test needs of the cluster: clients, and a namespace of its own.
type suite struct {
	testing.TB
	client    ctrl.WithWatch
	clientset kubernetes.Interface
	config    *rest.Config
	namespace string
	// clusterDir is the folder that hack/cluster keeps the cluster in.
	clusterDir string
}

// newSuite connects to the cluster and makes a namespace, which goes when the test ends.
func newSuite(t *testing.T) *suite {
	t.Helper()
	dir := os.Getenv("SEAMARK_CLUSTER_DIR")
	if dir == "" {
		dir = "../../.cluster"
	}
	dir, err := filepath.Abs(dir)
	must(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatalf("no cluster, start one with `make cluster-up install`: %v", err)
	}
	config.QPS = -1
	types := runtime.NewScheme()
	must(t, scheme.AddToScheme(types))
	must(t, appsv1alpha1.AddToScheme(types))
	must(t, apiextensionsv1.AddToScheme(types))
	client, err := ctrl.NewWithWatch(config, ctrl.Options{Scheme: types})
	must(t, err)
	clientset, err := kubernetes.NewForConfig(config)
	must(t, err)

	s := &suite{TB: t, client: client, clientset: clientset, config: config, clusterDir: dir}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	must(t, client.Create(t.Context(), namespace))
	s.namespace = namespace.Name
	t.Cleanup(func() {
		if t.Failed() {
			s.dump()
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), settle)
		defer cancel()
		if err := client.Delete(ctx, namespace); err != nil {
			t.Errorf("deleting namespace %s: %v", namespace.Name, err)
		}
	})
	s.eventually("the default service account", func(ctx context.Context) error {
		return client.Get(ctx, s.key("default"), &corev1.ServiceAccount{})
	})
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *suite) key(name string) ctrl.ObjectKey {
	return ctrl.ObjectKey{Namespace: s.namespace, Name: name}
}

// create makes the objects in the test's namespace.
func (s *suite) create(objects ...ctrl.Object) {
	s.Helper()
	for _, o := range objects {
		o.SetNamespace(s.namespace)
		if err := s.client.Create(s.Context(), o); err != nil {
			s.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

// eventually waits until check returns nil, and fails with its last error if it never does.
func (s *suite) eventually(what string, check func(context.Context) error) {
	s.Helper()
	s.within(settle, what, check)
}

// within is eventually with a bound of the test's own, where the bound is what is promised.
func (s *suite) within(bound time.Duration, what string, check func(context.Context) error) {
	s.Helper()
	var last error
	err := wait.PollUntilContextTimeout(s.Context(), 50*time.Millisecond, bound, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		s.Fatalf("%s: not within %s: %v", what, bound, last)
	}
}

// never fails if check returns an error at any time within the period.
func (s *suite) never(period time.Duration, what string, check func(context.Context) error) {
	s.Helper()
	var broken error
	err := wait.PollUntilContextTimeout(s.Context(), 100*time.Millisecond, period, true, func(ctx context.Context) (bool, error) {
		broken = check(ctx)
		// A check that the end of the period cuts off tells nothing.
		return broken != nil && ctx.Err() == nil, nil
	})
	if err == nil {
		s.Fatalf("%s: %v", what, broken)
	}
}

// getPod reads a pod of the test's namespace.
func (s *suite) getPod(name string) *corev1.Pod {
	s.Helper()
	pod := &corev1.Pod{}
	must(s, s.client.Get(s.Context(), s.key(name), pod))
	return pod
}

// running waits until the pods run.
func (s *suite) running(names ...string) {
	s.Helper()
	for _, name := range names {
		s.eventually("pod "+name+" runs", func(ctx context.Context) error {
			pod := &corev1.Pod{}
			if err := s.client.Get(ctx, s.key(name), pod); err != nil {
				return err
			}
			if pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("phase %s: %v", pod.Status.Phase, pod.Status.ContainerStatuses)
			}
			return nil
		})
	}
}

// exec runs a shell line in a pod's first container and returns what it printed.
func (s *suite) exec(pod, line string) string {
	s.Helper()
	out, err := s.tryExec(pod, line)
	must(s, err)
	return out
}

func (s *suite) tryExec(pod, line string) (string, error) {
	request := s.clientset.CoreV1().RESTClient().Post().Namespace(s.namespace).
		Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Command: []string{"sh", "-c", line}, Stdout: true, Stderr: true,
		}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(s.config, "POST", request.URL())
	if err != nil {
		return "", fmt.Errorf("exec %q in %s: %w", line, pod, err)
	}
	var out, errOut bytes.Buffer
	if err := executor.StreamWithContext(s.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut}); err != nil {
		return "", fmt.Errorf("exec %q in %s: %w: %s", line, pod, err, errOut.String())
	}
	return out.String(), nil
}

// kubectl runs the cluster's kubectl in the test's namespace, as a user would.
func (s *suite) kubectl(args ...string) string {
	s.Helper()
	command := exec.CommandContext(s.Context(), filepath.Join(s.clusterDir, "bin", "kubectl"),
		append([]string{"--kubeconfig", filepath.Join(s.clusterDir, "kubeconfig"), "-n", s.namespace}, args...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		s.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// dump prints what one needs to see why a test failed.
func (s *suite) dump() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), 20*time.Second)
	defer cancel()
	for _, args := range [][]string{
		{"get", "pods", "-o", "wide", "--show-labels"},
		{"get", "podprobemarkers", "-o", "yaml"},
		{"get", "nodepodprobes", "-o", "yaml"},
		{"get", "events", "--sort-by=.lastTimestamp"},
		{"get", "pods", "-n", systemNamespace, "-o", "wide"},
		{"logs", "-n", systemNamespace, "-l", "app.kubernetes.io/name=seamark", "--tail=60", "--prefix"},
	} {
		command := exec.CommandContext(ctx, filepath.Join(s.clusterDir, "bin", "kubectl"),
			append([]string{"--kubeconfig", filepath.Join(s.clusterDir, "kubeconfig"), "-n", s.namespace}, args...)...)
		out, err := command.CombinedOutput()
		s.Logf("kubectl %s (%v)\n%.20000s", strings.Join(args, " "), err, out)
	}
}
