// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/follow"
)

// recipes are the tests by the folder of their recipe.
var recipes = map[string]func(*suite){
	"etcd":      runEtcd,
	"galera":    runGalera,
	"haproxy":   runHaproxy,
	"openttd":   runOpenttd,
	"patroni":   runPatroni,
	"rabbitmq":  runRabbitmq,
	"redis":     runRedis,
	"zookeeper": runZookeeper,
}

// TestRecipes runs the recipes that SEAMARK_RECIPES names.
func TestRecipes(t *testing.T) {
	selected := strings.Fields(os.Getenv("SEAMARK_RECIPES"))
	if len(selected) == 0 {
		t.Fatal("SEAMARK_RECIPES names no recipes: run `make test-recipes`")
	}
	for _, name := range selected {
		run := recipes[name]
		if run == nil {
			t.Errorf("recipe %s has no test", name)
			continue
		}
		t.Run(name, func(t *testing.T) { run(newSuite(t, name)) })
	}
}

// suite is what the test of one recipe uses of the cluster.
type suite struct {
	*cluster.Cluster
	// recipe is the name of the recipe.
	recipe string
}

// newSuite connects to the cluster and creates a namespace, which is deleted when the test ends.
func newSuite(t *testing.T, recipe string) *suite {
	t.Helper()
	s := &suite{Cluster: cluster.Connect(t, "../.."), recipe: recipe}
	s.CreateNamespace("recipe-"+recipe+"-", func(ctx context.Context) {
		if t.Failed() {
			s.Dump(ctx, "get pods -o wide --show-labels", "get pods,podprobemarkers,probereports -o yaml",
				"get clonesets,statefulsets.apps.kruise.io -o yaml", "get events --sort-by=.lastTimestamp",
				"logs --selector=app --all-containers --prefix --tail=60",
				"logs -n "+cluster.SystemNamespace+" -l app.kubernetes.io/name=seamark --tail=60 --prefix")
		}
	})
	return s
}

// apply creates the objects of the recipe.
func (s *suite) apply() {
	s.Helper()
	s.Kubectl("apply", "-f", filepath.Join(s.Root, "examples", "recipes", s.recipe))
}

// exec runs a program in a container of a pod, and returns its output.
func (s *suite) exec(ctx context.Context, pod, container string, command ...string) (string, error) {
	out, err := s.TryKubectl(ctx, append([]string{"exec", pod, "--container", container, "--"}, command...)...)
	if err != nil {
		return "", fmt.Errorf("run %s in %s: %w: %s", strings.Join(command, " "), pod, err, out)
	}
	return out, nil
}

// pods returns the pods with a label, as KEY=VALUE, by name.
func (s *suite) pods(ctx context.Context, selector string) ([]corev1.Pod, error) {
	key, value, _ := strings.Cut(selector, "=")
	list := &corev1.PodList{}
	if err := s.Client.List(ctx, list, ctrl.InNamespace(s.Namespace), ctrl.MatchingLabels{key: value}); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// slow is how long a test waits for a database, which takes its time on a busy machine. Only a hang reaches it.
var slow = await.Poll{Interval: 200 * time.Millisecond, Timeout: 3 * cluster.Timeout}

// settled waits until as many pods have the label, all ready with the image in their first container, and check accepts
// them.
func (s *suite) settled(selector, image string, count int, check func(context.Context, []corev1.Pod) error) {
	s.Helper()
	slow.Success(s, selector+" is at rest", func(ctx context.Context) error {
		pods, err := s.pods(ctx, selector)
		if err != nil {
			return err
		}
		if len(pods) != count {
			return fmt.Errorf("%d pods, want %d", len(pods), count)
		}
		for _, pod := range pods {
			if got := pod.Spec.Containers[0].Image; got != image {
				return fmt.Errorf("pod %s has the image %s, want %s", pod.Name, got, image)
			}
			if pod.DeletionTimestamp != nil || !slices.ContainsFunc(pod.Status.Conditions, isReady) {
				return fmt.Errorf("pod %s is not ready: %+v", pod.Name, pod.Status.Conditions)
			}
		}
		return check(ctx, pods)
	})
}

func isReady(c corev1.PodCondition) bool {
	return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
}

// observe calls see with each pod of the test's namespace and with each change of one, until the test ends. Calls do not
// overlap. It fails the test if it misses a change.
func (s *suite) observe(see func(*corev1.Pod)) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	wait, err := follow.Objects(ctx, s.Client, &corev1.PodList{}, func(event watch.Event) {
		if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Deleted {
			see(pod)
		}
	}, ctrl.InNamespace(s.Namespace))
	if err != nil {
		cancel()
		s.Fatalf("follow pods: %v", err)
	}
	s.Cleanup(func() { cancel(); expect.NoErrorf(s, wait(), "follow pods") })
}

// atMostOne fails the test if two pods have the label, as KEY=VALUE, at the same time, until the test ends.
func (s *suite) atMostOne(label string) {
	s.Helper()
	holders := map[string]bool{}
	s.observe(func(pod *corev1.Pod) {
		if !has(pod, label) {
			delete(holders, pod.Name)
			return
		}
		holders[pod.Name] = true
		if len(holders) > 1 {
			s.Errorf("pods with %s: %v, want at most one", label, slices.Sorted(maps.Keys(holders)))
		}
	})
}

// order records in which order pods get an image, with the role of each at this time.
type order struct {
	image string
	role  func(*corev1.Pod) string

	mu    sync.Mutex
	seen  map[string]bool
	names []string
	roles []string
}

// record follows the pods of the test's namespace. The role of a pod is the value of a label.
func (s *suite) record(image, label string) *order {
	s.Helper()
	return s.recordRoles(image, func(pod *corev1.Pod) string { return pod.Labels[label] })
}

// recordRoles follows the pods of the test's namespace.
func (s *suite) recordRoles(image string, role func(*corev1.Pod) string) *order {
	s.Helper()
	o := &order{image: image, role: role, seen: map[string]bool{}}
	s.observe(o.see)
	return o
}

func (o *order) see(pod *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if pod.Spec.Containers[0].Image == o.image && !o.seen[pod.Name] {
		o.seen[pod.Name] = true
		o.names, o.roles = append(o.names, pod.Name), append(o.roles, o.role(pod))
	}
}

// updated returns the pods that have the image, in the order in which they got it, and their roles at this time.
func (o *order) updated() (names, roles []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.names), slices.Clone(o.roles)
}

// setImage changes the image of the first container in the template of a StatefulSet of apps.kruise.io or a CloneSet.
func (s *suite) setImage(resource, image string) {
	s.Helper()
	s.Kubectl("patch", resource, "--type=json", "-p",
		fmt.Sprintf(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": %q}]`, image))
}

// clusterIP returns the address of a Service.
func (s *suite) clusterIP(name string) string {
	s.Helper()
	return s.Kubectl("get", "service", name, "--output=jsonpath={.spec.clusterIP}")
}

// nodePort returns the address of a Service of the type NodePort.
func (s *suite) nodePort(name string) string {
	s.Helper()
	var service corev1.Service
	cluster.Must(s, s.Client.Get(s.Context(), s.Key(name), &service))
	var node corev1.Node
	cluster.Must(s, s.Client.Get(s.Context(), s.Key(s.AnyNode()), &node))
	return fmt.Sprintf("%s:%d", node.Status.Addresses[0].Address, service.Spec.Ports[0].NodePort)
}

// cutOff drops the packets of a pod until the result is called, or the test ends. Programs in it still run, and commands in
// its containers do, too.
func (s *suite) cutOff(pod string) (heal func()) {
	s.Helper()
	to, from := s.drop(pod, "-d"), s.drop(pod, "-s")
	return func() { to(); from() }
}

// drop drops the packets to (-d) or from (-s) a pod that match the terms of iptables, until the result is called, or the test
// ends.
func (s *suite) drop(name, direction string, match ...string) (heal func()) {
	s.Helper()
	pod := s.Pod(name)
	iptables := func(ctx context.Context, action string) {
		args := []string{"--net=/run/netns/seamark-" + pod.Spec.NodeName, "--", "iptables", "--wait", action, "FORWARD", direction, pod.Status.PodIP}
		out, err := s.Run(ctx, "nsenter", append(append(args, match...), "-j", "DROP")...)
		expect.NoErrorf(s, err, "change the packet filter: %s", out)
	}
	heal = sync.OnceFunc(func() { iptables(context.WithoutCancel(s.Context()), "--delete") })
	s.Cleanup(heal)
	iptables(s.Context(), "--insert")
	return heal
}
