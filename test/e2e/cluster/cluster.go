// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster connects end-to-end tests to the local cluster.
package cluster

import (
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
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
)

const (
	// SystemNamespace is the namespace that `make install` installs Seamark in.
	SystemNamespace = configv1alpha1.DefaultNamespace
	// BusyboxImage is preloaded on every cluster that hack/cluster starts.
	BusyboxImage = "docker.io/library/busybox:1.35"
	// Timeout is the longest that a test waits for a condition on a loaded machine. Only a
	// hang reaches it.
	Timeout = 2 * time.Minute
)

// Cluster is the local cluster and the namespace of one test.
type Cluster struct {
	testing.TB
	Client    client.WithWatch
	Config    *rest.Config
	Namespace string
	// Dir is the folder of the cluster, and Root the root of the repository.
	Dir, Root string
}

// Connect returns the local cluster. The test still needs [Cluster.CreateNamespace].
func Connect(t testing.TB, root string) *Cluster {
	t.Helper()
	root, err := filepath.Abs(root)
	Must(t, err)
	dir := os.Getenv("SEAMARK_CLUSTER_DIR")
	if dir == "" {
		dir = filepath.Join(root, ".cluster")
	}
	dir, err = filepath.Abs(dir)
	Must(t, err)
	c := &Cluster{TB: t, Dir: dir, Root: root}
	c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	expect.NoErrorf(t, err, "no cluster, start one with `make install`")
	c.Config.QPS = -1
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme, seamarkv1alpha1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		Must(t, add(types))
	}
	c.Client, err = client.NewWithWatch(c.Config, client.Options{Scheme: types})
	Must(t, err)
	return c
}

// CreateNamespace creates the test's namespace with a name that begins with prefix. It is
// deleted when the test ends, after cleanup.
func (c *Cluster) CreateNamespace(prefix string, cleanup func(ctx context.Context)) {
	c.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	Must(c, c.Client.Create(c.Context(), namespace))
	c.Namespace = namespace.Name
	c.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), 2*Timeout)
		defer cancel()
		cleanup(ctx)
		if err := c.Client.Delete(ctx, namespace); err != nil {
			c.Errorf("delete namespace %s: %v", namespace.Name, err)
		}
	})
	c.Eventually("the default service account", func(ctx context.Context) error {
		return c.Client.Get(ctx, c.Key("default"), &corev1.ServiceAccount{})
	})
}

// Key returns the key of an object in the test's namespace.
func (c *Cluster) Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: c.Namespace, Name: name}
}

// Eventually waits until check returns nil. It fails the test with the last error on a
// timeout.
func (c *Cluster) Eventually(what string, check func(context.Context) error) {
	c.Helper()
	await.Poll{Interval: 100 * time.Millisecond, Timeout: Timeout}.Success(c, what, check)
}

// Never fails the test if check returns an error within the period.
func (c *Cluster) Never(period time.Duration, what string, check func(context.Context) error) {
	c.Helper()
	var broken error
	err := wait.PollUntilContextTimeout(c.Context(), 100*time.Millisecond, period, true, func(ctx context.Context) (bool, error) {
		broken = check(ctx)
		// Ignore an error of a check that the end of the period canceled.
		return broken != nil && ctx.Err() == nil, nil
	})
	if err == nil {
		c.Fatalf("%s: %v", what, broken)
	}
}

// Create creates the objects in the test's namespace.
func (c *Cluster) Create(objects ...client.Object) {
	c.Helper()
	for _, o := range objects {
		o.SetNamespace(c.Namespace)
		expect.NoErrorf(c, c.Client.Create(c.Context(), o), "create %T %s", o, o.GetName())
	}
}

// UseCRDs replaces the versions of CRDs of the cluster, with their schemas.
func (c *Cluster) UseCRDs(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, crd := range crds {
		current := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(crd), current); err != nil {
			return fmt.Errorf("get CRD %s: %w", crd.Name, err)
		}
		base := current.DeepCopy()
		current.Spec.Versions = crd.DeepCopy().Spec.Versions
		if err := c.Client.Patch(ctx, current, client.MergeFrom(base)); err != nil {
			return fmt.Errorf("replace CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

// Kubeconfig returns the path of the cluster's kubeconfig file.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir, "kubeconfig") }

// Kubectl runs the cluster's kubectl in the test's namespace and returns its output.
func (c *Cluster) Kubectl(args ...string) string {
	c.Helper()
	out, err := c.TryKubectl(c.Context(), args...)
	if err != nil {
		c.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// TryKubectl is Kubectl with an error as result.
func (c *Cluster) TryKubectl(ctx context.Context, args ...string) (string, error) {
	return c.Run(ctx, filepath.Join(c.Dir, "bin", "kubectl"),
		append([]string{"--kubeconfig", c.Kubeconfig(), "--namespace", c.Namespace}, args...)...)
}

// Dump logs the output of commands of kubectl, to show why a test failed.
func (c *Cluster) Dump(ctx context.Context, commands ...string) {
	for _, line := range commands {
		out, err := c.TryKubectl(ctx, strings.Fields(line)...)
		c.Logf("kubectl %s (%v)\n%.20000s", line, err, out)
	}
}

// Pod returns a pod of the test's namespace.
func (c *Cluster) Pod(name string) *corev1.Pod {
	c.Helper()
	pod := &corev1.Pod{}
	Must(c, c.Client.Get(c.Context(), c.Key(name), pod))
	return pod
}

// Run runs a program in the repository's root and returns its output on both streams.
func (c *Cluster) Run(ctx context.Context, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = c.Root
	out, err := command.CombinedOutput()
	return string(out), err
}

// Must fails the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	expect.NoError(t, err)
}

// AnyNode returns the name of a node.
func (c *Cluster) AnyNode() string {
	c.Helper()
	var nodes corev1.NodeList
	Must(c, c.Client.List(c.Context(), &nodes))
	return nodes.Items[0].Name
}

// RunStatic runs the pod as a static pod of the node, in the test's namespace, until the test
// ends. The name of its mirror pod ends with a dash and the name of the node.
func (c *Cluster) RunStatic(node string, pod *corev1.Pod) {
	c.Helper()
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Namespace = c.Namespace
	manifest, err := yaml.Marshal(pod)
	Must(c, err)
	folder := filepath.Join(c.Dir, "nodes", node, "static-pods")
	Must(c, os.MkdirAll(folder, 0o755))
	path := filepath.Join(folder, c.Namespace+"-"+pod.Name+".yaml")
	Must(c, os.WriteFile(path, manifest, 0o600))
	c.Cleanup(func() { Must(c, os.Remove(path)) })
}
