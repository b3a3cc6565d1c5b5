// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/chaos/ledger"
	"github.com/seamark-dev/seamark/test/chaos/programs"
	"github.com/seamark-dev/seamark/test/chaos/proxy"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/process"
)

// The programs, which are also the names of their service accounts.
const (
	managerName   = "seamark-manager"
	agentName     = "seamark-agent"
	workloadsName = "seamark-workloads"
)

// hostAddress is the address of the machine on the bridge of the nodes, where nodes reach the proxy.
const hostAddress = "10.231.0.1"

// agentPort is the port of the metrics of an agent on its node.
const agentPort = "18399"

// world is a cluster with Seamark's programs behind a proxy, and users who change things.
type world struct {
	*cluster.Cluster
	proxy  *proxy.Proxy
	ledger *ledger.Ledger
	nodes  []corev1.Node
	// running are the processes by their names, such as seamark-manager-0.
	running map[string]*programs.Program
	folder  string
	truth   *truth
	watch   *watcher
	users   *users
}

// newWorld starts everything but the load. It stops when the test ends.
func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{Cluster: cluster.Connect(t, "../.."), ledger: ledger.New(), running: map[string]*programs.Program{}, folder: t.TempDir()}
	nodes := &corev1.NodeList{}
	cluster.Must(t, w.Client.List(t.Context(), nodes))
	w.nodes = nodes.Items
	w.install()
	w.CreateNamespace("chaos-", func(ctx context.Context) {
		if t.Failed() {
			w.dump(ctx)
		}
		w.empty(ctx)
	})
	var err error
	w.proxy, err = proxy.New(proxy.Options{Upstream: w.Config, Address: hostAddress + ":0", Seed: seed})
	cluster.Must(t, err)
	w.Cleanup(func() { cluster.Must(t, w.proxy.Close()) })
	w.truth = newTruth(filepath.Join(w.Dir, "truth", w.Namespace))
	w.Cleanup(func() { cluster.Must(t, os.RemoveAll(w.truth.folder)) })
	w.startPrograms()
	w.watch = newWatcher(w)
	return w
}

// must fails the test on an error.
func (w *world) must(err error) {
	w.Helper()
	cluster.Must(w, err)
}

// install pauses the installed programs, if there are any, until the test ends, and creates what the programs of the
// test need and the cluster does not have.
func (w *world) install() {
	w.Helper()
	crds, err := env.ReadCRDs("")
	w.must(err)
	for _, crd := range crds {
		w.must(client.IgnoreAlreadyExists(w.Client.Create(w.Context(), crd)))
	}
	w.must(client.IgnoreAlreadyExists(w.Client.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.SystemNamespace}})))
	for _, path := range []string{
		"config/rbac", "config/policies", "config/workloads/rbac.yaml", "config/workloads/policy.yaml", "config/daemonsets/rbac.yaml",
	} {
		objects, err := env.ReadManifests(path)
		w.must(err)
		for _, object := range objects {
			if err := client.IgnoreAlreadyExists(w.Client.Create(w.Context(), object)); err != nil {
				w.Fatalf("create %s %s: %v", object.GetKind(), object.GetName(), err)
			}
		}
	}
	for _, account := range []string{managerName, agentName, workloadsName} {
		w.must(client.IgnoreAlreadyExists(w.Client.Create(w.Context(), accountOf(account))))
	}
	w.pause()
}

func accountOf(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.SystemNamespace, Name: name}}
}

// startPrograms starts two managers, two replicas of seamark-workloads and an agent per node.
func (w *world) startPrograms() {
	w.Helper()
	// Earlier managers do not create it.
	w.must(client.IgnoreAlreadyExists(w.Client.Create(w.Context(), env.WorkloadsBinding(w.Namespace))))
	config := filepath.Join(w.folder, "workloads.yaml")
	w.must(os.WriteFile(
		config, []byte("apiVersion: config.seamark.dev/v1alpha1\nkind: WorkloadsConfiguration\ncontrollers: {daemonSet: {enabled: true}}\n"), 0o600,
	))
	for i := range 2 {
		w.start(
			managerName, fmt.Sprint(i), "", env.FreeAddress(w), w.token(managerName, nil), "--health-probe-bind-address=0",
			"--pprof-bind-address="+env.FreeAddress(w),
		)
		w.start(
			workloadsName, fmt.Sprint(i), "", env.FreeAddress(w), w.token(workloadsName, nil), "--health-probe-bind-address=0",
			"--config="+config, "--pprof-bind-address="+env.FreeAddress(w),
		)
	}
	for _, node := range w.nodes {
		w.startAgent(node.Name)
	}
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for _, program := range w.running {
			program.Close(ctx)
		}
		if w.Failed() {
			w.logs()
		}
	})
}

// startAgent starts the agent of a node, with a token that is bound to a pod on the node, as the kubelet mounts it.
func (w *world) startAgent(node string) {
	w.Helper()
	address := w.addressOf(node) + ":" + agentPort
	// The link works for folders whose sockets have too long a path.
	socket := "unix:///run/seamark-cluster/nodes/" + node + "/containerd.sock"
	w.start(agentName, node, "seamark-"+node, address, w.agentToken(node), "--node-name="+node, "--cri-endpoint="+socket)
}

func (w *world) addressOf(node string) string {
	at := slices.IndexFunc(w.nodes, func(n corev1.Node) bool { return n.Name == node })
	for _, address := range w.nodes[at].Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return address.Address
		}
	}
	w.Fatalf("node %s has no address", node)
	return ""
}

// start starts a program behind the proxy.
func (w *world) start(name, suffix, netns, metrics, token string, args ...string) {
	w.Helper()
	path := filepath.Join(os.Getenv(clockVariable), name)
	if os.Getenv(clockVariable) == "" {
		var err error
		path, err = process.Built(name, "build")
		w.must(err)
	}
	full := name + "-" + suffix
	config, err := w.proxy.Config(full)
	w.must(err)
	config.BearerToken = token
	// The logs stay, next to those of the cluster.
	log := filepath.Join(w.Dir, "logs", full+".log")
	if err := os.Remove(log); !errors.Is(err, fs.ErrNotExist) {
		w.must(err)
	}
	program, err := programs.Start(programs.Spec{
		Name: full, Path: path, NetNS: netns, Metrics: "http://" + metrics + "/metrics", Log: log,
		Args: append(args, "--kubeconfig="+env.Kubeconfig(w, config), "--metrics-bind-address="+metrics),
	})
	w.must(err)
	w.running[full] = program
}

// token returns a token of a program's account.
func (w *world) token(account string, bound *authenticationv1.BoundObjectReference) string {
	w.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound, ExpirationSeconds: ptr.To[int64](12 * 3600)}}
	w.must(w.Client.SubResource("token").Create(w.Context(), accountOf(account), request))
	return request.Status.Token
}

// agentToken creates the pod of an agent, which only sleeps, and returns its token.
func (w *world) agentToken(node string) string {
	w.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.SystemNamespace, GenerateName: "chaos-agent-"},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: agentName, TerminationGracePeriodSeconds: ptr.To[int64](0),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:  []corev1.Container{{Name: "main", Image: cluster.BusyboxImage, Command: []string{"sleep", "1000000"}}},
		},
	}
	w.must(w.Client.Create(w.Context(), pod))
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cluster.Timeout)
		defer cancel()
		w.must(client.IgnoreNotFound(w.Client.Delete(ctx, pod)))
	})
	return w.token(agentName, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID})
}

// stolen returns the configuration of a client that has stolen a token of the agent of a node.
func (w *world) stolen(node string) *rest.Config {
	w.Helper()
	config := rest.AnonymousClientConfig(w.Config)
	config.BearerToken = w.agentToken(node)
	return config
}

// of returns the processes of a program, in the order of their names.
func (w *world) of(name string) []*programs.Program {
	var found []*programs.Program
	for full, program := range w.running {
		if strings.HasPrefix(full, name+"-") {
			found = append(found, program)
		}
	}
	slices.SortFunc(found, func(a, b *programs.Program) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// edit changes an object as a user does, and tries again while the API server does not accept it for a while.
func edit[T client.Object](ctx context.Context, w *world, o T, change func(T)) error {
	return w.persist(ctx, func(ctx context.Context) error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return fmt.Errorf("read %s: %w", o.GetName(), err)
			}
			change(o)
			return w.Client.Update(ctx, o) //nolint:wrapcheck // The caller wraps it.
		})
	})
}

// persist repeats a request of a user until it succeeds, or cannot.
func (w *world) persist(ctx context.Context, do func(context.Context) error) error {
	final := func(err error) bool {
		return err == nil || apierrors.IsNotFound(err) || apierrors.IsInvalid(err)
	}
	var last error
	err := poll(ctx, userPatience, func(ctx context.Context) bool {
		last = do(ctx)
		return final(last)
	})
	if last != nil {
		return fmt.Errorf("a user's request: %w", last)
	}
	return err
}
