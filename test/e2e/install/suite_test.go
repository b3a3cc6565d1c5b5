// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
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
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

const (
	// system is the namespace of the release, and release its name, as of `make install`.
	system  = "seamark-system"
	release = "seamark"
	// settle is the longest wait for anything on a loaded machine.
	settle = 2 * time.Minute
)

// suite is the cluster, and a namespace in it.
type suite struct {
	testing.TB
	client    client.WithWatch
	namespace string
	root      string
	kube      string
	helmPath  string
	// values is a file with the values of the release as it was found.
	values string
}

// newSuite connects, makes a namespace, and has the release restored when the test ends.
func newSuite(t *testing.T) *suite {
	t.Helper()
	root, err := filepath.Abs("../../..")
	must(t, err)
	dir := os.Getenv("SEAMARK_CLUSTER_DIR")
	if dir == "" {
		dir = filepath.Join(root, ".cluster")
	}
	s := &suite{TB: t, root: root, kube: filepath.Join(dir, "kubeconfig"), values: filepath.Join(t.TempDir(), "values.yaml")}
	s.helmPath = strings.TrimSpace(s.run("go", "tool", "-modfile=hack/tools/go.mod", "-n", "helm"))
	config, err := clientcmd.BuildConfigFromFlags("", s.kube)
	if err != nil {
		t.Fatalf("no cluster, start one with `make install`: %v", err)
	}
	config.QPS = -1
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		must(t, add(types))
	}
	s.client, err = client.NewWithWatch(config, client.Options{Scheme: types})
	must(t, err)
	must(t, os.WriteFile(s.values, []byte(s.helm("get", "values", release, "-o", "yaml")), 0o600))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "install-"}}
	must(t, s.client.Create(t.Context(), namespace))
	s.namespace = namespace.Name
	t.Cleanup(func() { s.restore(namespace) })
	s.until("the default service account", func(ctx context.Context) error {
		return s.client.Get(ctx, s.key("default"), &corev1.ServiceAccount{})
	})
	return s
}

// restore brings the release back as it was, whatever state the test has left it in.
func (s *suite) restore(namespace *corev1.Namespace) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), 2*settle)
	defer cancel()
	if s.Failed() {
		out, err := s.command(ctx, s.kubectlPath(), s.kubectlArgs("get", "pods,jobs", "-o", "wide", "--namespace", system)...)
		s.Logf("state of %s (%v):\n%s", system, err, out)
	}
	if err := s.client.Delete(ctx, namespace); err != nil {
		s.Errorf("deleting namespace %s: %v", namespace.Name, err)
	}
	args := append(s.helmArgs("upgrade", "--install", release, "charts/seamark", "--force-conflicts"), s.installArgs()...)
	out, err := s.command(ctx, s.helmPath, args...)
	if err != nil {
		s.Logf("upgrading the release: %v\n%s", err, out)
		if out, err = s.command(ctx, s.helmPath, s.helmArgs("uninstall", release, "--no-hooks", "--wait")...); err == nil {
			out, err = s.command(ctx, s.helmPath, args...)
		}
	}
	if err != nil {
		s.Errorf("restoring the release: %v\n%s", err, out)
	}
}

// install installs the chart with the values of the release as it was found, and more.
func (s *suite) install(more ...string) string {
	s.Helper()
	return s.helm(append(append([]string{"install", release, "charts/seamark"}, s.installArgs()...), more...)...)
}

func (s *suite) installArgs() []string {
	return []string{"-f", s.values, "--wait", "--timeout", settle.String()}
}

func (s *suite) helmArgs(args ...string) []string {
	return append(args, "--kubeconfig", s.kube, "--namespace", system)
}

// helm runs helm on the release's namespace and returns all that it says.
func (s *suite) helm(args ...string) string {
	s.Helper()
	return s.run(s.helmPath, s.helmArgs(args...)...)
}

func (s *suite) kubectlPath() string { return filepath.Join(filepath.Dir(s.kube), "bin", "kubectl") }

// kubectlArgs are for the test's namespace, unless they name another.
func (s *suite) kubectlArgs(args ...string) []string {
	return append([]string{"--kubeconfig", s.kube, "--namespace", s.namespace}, args...)
}

// kubectl runs kubectl and returns all that it says.
func (s *suite) kubectl(args ...string) string {
	s.Helper()
	return s.run(s.kubectlPath(), s.kubectlArgs(args...)...)
}

func (s *suite) run(name string, args ...string) string {
	s.Helper()
	out, err := s.command(s.Context(), name, args...)
	if err != nil {
		s.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return out
}

// command runs a program in the repository's root.
func (s *suite) command(ctx context.Context, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = s.root
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	return out.String(), err
}

// until waits until check returns nil.
func (s *suite) until(what string, check func(context.Context) error) {
	s.Helper()
	var last error
	err := wait.PollUntilContextTimeout(s.Context(), 100*time.Millisecond, settle, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		s.Fatalf("%s: not within %s: %v", what, settle, last)
	}
}

func (s *suite) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.namespace, Name: name}
}

// programs returns the UIDs of Seamark's own pods.
func (s *suite) programs() map[string]bool {
	s.Helper()
	var pods corev1.PodList
	must(s, s.client.List(s.Context(), &pods, client.InNamespace(system)))
	uids := map[string]bool{}
	for i := range pods.Items {
		component := pods.Items[i].Labels["app.kubernetes.io/component"]
		if (component == "manager" || component == "agent") && pods.Items[i].DeletionTimestamp == nil {
			uids[string(pods.Items[i].UID)] = true
		}
	}
	return uids
}

// checkReplaced fails where one of Seamark's pods has outlived a change of its template.
func (s *suite) checkReplaced(what string, before map[string]bool) {
	s.Helper()
	for uid := range s.programs() {
		if before[uid] {
			s.Errorf("%s: pod %s of %s is there still", what, uid, system)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contains fails where the output doesn't say what it should.
func (s *suite) contains(what, output string, wants ...string) {
	s.Helper()
	for _, want := range wants {
		if !strings.Contains(output, want) {
			s.Errorf("%s says\n%s\nwant it to say %q", what, output, want)
		}
	}
}
