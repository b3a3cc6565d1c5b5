// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/hack/cluster/internal/address"
	"github.com/seamark-dev/seamark/hack/cluster/internal/build"
	"github.com/seamark-dev/seamark/hack/cluster/internal/controlplane"
	"github.com/seamark-dev/seamark/hack/cluster/internal/node"
	"github.com/seamark-dev/seamark/hack/image"
)

const pollPeriod = 100 * time.Millisecond

// await polls check until it returns no error. It returns early if a daemon ends.
func (c *Cluster) await(ctx context.Context, timeout time.Duration, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, timeout, true, func(ctx context.Context) (bool, error) {
		if last = check(ctx); last == nil {
			return true, nil
		}
		return false, c.allAlive()
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, errors.Join(err, last))
	}
	return nil
}

// allAlive returns an error if a daemon has ended, with the end of its log.
func (c *Cluster) allAlive() error {
	name, err := c.processes.Ended()
	if err != nil || name == "" {
		return err
	}
	return fmt.Errorf("%s has ended; its log ends with:\n%s", name, build.Tail(c.dir.Log(name)))
}

// listening returns a check that an address accepts connections.
func listening(network, address string) func(context.Context) error {
	return func(ctx context.Context) error {
		dialer := net.Dialer{Timeout: time.Second}
		connection, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		return connection.Close()
	}
}

// api is a client of the API server, as the administrator.
type api struct {
	client kubernetes.Interface
}

func newAPI(kubeconfig string) (*api, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.Timeout = 5 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client of the API server: %w", err)
	}
	return &api{client: client}, nil
}

func (a *api) ready(ctx context.Context) error {
	if _, err := a.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return fmt.Errorf("get /readyz: %w", err)
	}
	return nil
}

// nodesReady checks that every node of the plan is Ready, and that the default service account exists, which pods
// need. A node in since must have a heartbeat after that time, and its kubelet must know its pods.
func (a *api) nodesReady(ctx context.Context, plan []address.Node, since map[string]time.Time) error {
	list, err := a.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	found := map[string]corev1.Node{}
	for _, item := range list.Items {
		found[item.Name] = item
	}
	for _, planned := range plan {
		item, ok := found[planned.Name]
		if !ok {
			return fmt.Errorf("%s is not registered", planned.Name)
		}
		if err := nodeReady(item, since[planned.Name]); err != nil {
			return err
		}
		if _, restarted := since[planned.Name]; restarted {
			if err := a.podsKnown(ctx, planned.Name); err != nil {
				return err
			}
		}
	}
	_, err = a.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get the default service account: %w", err)
	}
	return nil
}

func nodeReady(item corev1.Node, since time.Time) error {
	for _, taint := range item.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return fmt.Errorf("%s has the taint %s", item.Name, taint.Key)
		}
	}
	for _, condition := range item.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		if condition.Status != corev1.ConditionTrue {
			return fmt.Errorf("%s is not Ready: %s", item.Name, condition.Message)
		}
		if condition.LastHeartbeatTime.Time.Before(since) {
			return fmt.Errorf("%s has not reported since its start", item.Name)
		}
		return nil
	}
	return fmt.Errorf("%s has not reported", item.Name)
}

// podsKnown checks that the kubelet of a node knows all pods that are bound to it. Until then, it rejects
// `kubectl exec` for pods that kept running while it was not.
func (a *api) podsKnown(ctx context.Context, name string) error {
	bound, err := a.podsOf(ctx, name)
	if err != nil {
		return err
	}
	text, err := a.client.CoreV1().RESTClient().Get().
		Resource("nodes").Name(name).SubResource("proxy").Suffix("pods").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("get the pods of the kubelet of %s: %w", name, err)
	}
	var known corev1.PodList
	if err := json.Unmarshal(text, &known); err != nil {
		return fmt.Errorf("decode the pods of the kubelet of %s: %w", name, err)
	}
	uids := map[types.UID]bool{}
	for _, pod := range known.Items {
		uids[pod.UID] = true
	}
	for _, pod := range bound {
		active := pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
		if active && !uids[pod.UID] {
			return fmt.Errorf("the kubelet of %s does not know pod %s yet", name, pod.Name)
		}
	}
	return nil
}

// podsOf lists the pods that are bound to a node.
func (a *api) podsOf(ctx context.Context, name string) ([]corev1.Pod, error) {
	pods, err := a.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", name).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", name, err)
	}
	return pods.Items, nil
}

// deleteNode deletes a Node object and the pods that are bound to it, which no kubelet would end.
func (a *api) deleteNode(ctx context.Context, name string) error {
	err := a.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", name, err)
	}
	pods, err := a.podsOf(ctx, name)
	if err != nil {
		return err
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	for _, pod := range pods {
		err := a.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, now)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete pod %s of %s: %w", pod.Name, name, err)
		}
	}
	return nil
}

// BusyboxImage is loaded into every node, so that ordinary manifests run.
const BusyboxImage = "docker.io/library/busybox:1.35"

const busyboxProgram = "/bin/busybox"

// standard returns the names of the archives that are loaded into every node.
func standard() []string { return []string{"pause", "busybox"} }

// makeImages writes the standard archives that are missing or older than their programs.
func (c *Cluster) makeImages(ctx context.Context) error {
	if err := os.MkdirAll(c.dir.ImageDir(), 0o755); err != nil {
		return fmt.Errorf("create the image folder: %w", err)
	}
	sources := map[string]struct {
		program string
		make    func() (image.Image, error)
	}{
		"busybox": {busyboxProgram, func() (image.Image, error) {
			return image.Busybox(ctx, BusyboxImage, busyboxProgram)
		}},
		"pause": {c.dir.Bin("pause"), func() (image.Image, error) {
			pause := image.Image{Name: node.SandboxImage, Entrypoint: []string{"/pause"}}
			return pause, pause.AddFile(c.dir.Bin("pause"), "/pause")
		}},
	}
	for _, name := range standard() {
		source := sources[name]
		if newer(c.dir.Image(name), source.program) {
			continue
		}
		made, err := source.make()
		if err != nil {
			return err
		}
		if _, err := made.Write(c.dir.Image(name)); err != nil {
			return err
		}
	}
	return nil
}

// newer reports whether file exists and was written after source.
func newer(file, source string) bool {
	made, err := os.Stat(file)
	if err != nil {
		return false
	}
	from, err := os.Stat(source)
	return err == nil && made.ModTime().After(from.ModTime())
}

// importStandard loads the standard archives into a node, unless it has the same ones.
func (c *Cluster) importStandard(ctx context.Context, wanted node.Node) error {
	var stamp strings.Builder
	var archives []string
	for _, name := range standard() {
		info, err := os.Stat(c.dir.Image(name))
		if err != nil {
			return fmt.Errorf("find image %s: %w", name, err)
		}
		archives = append(archives, c.dir.Image(name))
		fmt.Fprintln(&stamp, name, info.Size(), info.ModTime().UnixNano())
	}
	path := c.dir.Node(wanted.Plan.Name).Imported()
	if found, err := os.ReadFile(path); err == nil && string(found) == stamp.String() {
		return nil
	}
	for _, archive := range archives {
		if err := c.importOne(ctx, wanted, archive); err != nil {
			return err
		}
	}
	return writeIfNew(path, []byte(stamp.String()))
}

func (c *Cluster) importOne(ctx context.Context, on node.Node, archive string) error {
	return c.ctr(ctx, on, "images", "import", "--snapshotter="+on.Snapshotter, archive)
}

// ctrTimeout is the time limit of one call: a loaded machine is slow to import a large image.
const ctrTimeout = 2 * time.Minute

func (c *Cluster) ctr(ctx context.Context, on node.Node, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, ctrTimeout)
	defer cancel()
	socket := c.dir.Short(c.dir.Node(on.Plan.Name).Socket())
	cmd := exec.CommandContext(ctx, on.Client(), append([]string{"--address=" + socket, "--namespace=k8s.io"}, args...)...)
	cmd.Env = controlplane.Environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("on %s: ctr %s: %w: %s", on.Plan.Name, strings.Join(args, " "), err, out)
	}
	return nil
}

// Load imports image archives into every node.
func (c *Cluster) Load(ctx context.Context, archives []string) error {
	if err := c.checkOwner(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	present, err := c.presentNodes()
	if err != nil {
		return err
	}
	if len(present) == 0 {
		return errors.New("no cluster is running: start one with `up` to load images")
	}
	for _, archive := range archives {
		path, err := filepath.Abs(archive)
		if err != nil {
			return fmt.Errorf("find %s: %w", archive, err)
		}
		for _, found := range present {
			on, err := c.asItIs(found)
			if err != nil {
				return err
			}
			if err := c.importOne(ctx, on, path); err != nil {
				return err
			}
		}
		c.say("loaded %s into %d node(s)", archive, len(present))
	}
	return nil
}

// asItIs returns the configuration that a running node was started with.
func (c *Cluster) asItIs(found address.Node) (node.Node, error) {
	files := c.dir.Node(found.Name)
	runtime, err := c.runtimeOf(found)
	if err != nil {
		return node.Node{}, err
	}
	config, err := os.ReadFile(files.Config("containerd.toml"))
	if err != nil {
		return node.Node{}, fmt.Errorf("read the configuration of %s: %w", found.Name, err)
	}
	snapshotter := "overlayfs"
	if strings.Contains(string(config), `snapshotter = "native"`) {
		snapshotter = "native"
	}
	return node.Node{Dir: c.dir, Plan: found, Runtime: runtime, Snapshotter: snapshotter}, nil
}
