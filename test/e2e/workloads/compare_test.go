// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// podsVariable sets the number of pods of TestInPlaceOrRecreated.
const podsVariable = "SEAMARK_COMPARE_PODS"

// update is what one change of the image cost.
type update struct {
	// seconds is the time until every pod runs the new image and is ready.
	seconds float64
	// podWrites is the number of successful writes of pods, by all programs.
	podWrites int
	// newPods is the number of pods that were created.
	newPods int
}

// TestInPlaceOrRecreated changes the image of a set, once with each policy. It runs alone, because
// it counts requests of the whole cluster. It only reports the times, which depend on the machine:
// docs/performance/workloads.md has those of 100 pods.
func TestInPlaceOrRecreated(t *testing.T) {
	s := newSuite(t)
	pods, err := strconv.Atoi(cmp.Or(os.Getenv(podsVariable), "10"))
	if err != nil || pods < 1 {
		t.Fatalf("%s: %q is invalid: must be a number of at least 1", podsVariable, os.Getenv(podsVariable))
	}
	clientset, err := kubernetes.NewForConfig(s.Config)
	cluster.Must(t, err)
	recreated := s.measure(clientset, "recreated", v1alpha1.RecreateCloneSetUpdateStrategyType, pods)
	inPlace := s.measure(clientset, "in-place", v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType, pods)
	t.Logf("%d pods, recreated %+v, in place %+v", pods, recreated, inPlace)
	if inPlace.newPods != 0 || recreated.newPods != pods {
		t.Errorf("%d pods were created in place and %d recreated, want 0 and %d", inPlace.newPods, recreated.newPods, pods)
	}
	if inPlace.podWrites >= recreated.podWrites {
		t.Errorf("%d writes of pods in place, want fewer than %d", inPlace.podWrites, recreated.podWrites)
	}
}

// measure creates a set, changes its image, and scales the set down.
func (s *suite) measure(clientset kubernetes.Interface, name string, policy v1alpha1.CloneSetUpdateStrategyType, pods int) (u update) {
	s.Helper()
	set := newCloneSet(name, int32(pods), func(set *v1alpha1.CloneSet) {
		set.Spec.UpdateStrategy.Type = policy
		container := &set.Spec.Template.Spec.Containers[0]
		container.Image = databaseImage + ":v1"
		// Without an API server, the replicas do not write a Lease.
		container.Command = []string{"example-database", "--name", name + "-0"}
		container.Env = []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST"}}
	})
	s.Create(set)
	s.settled(name, pods, runs(databaseImage+":v1"))
	before, err := s.pods(s.Context(), name)
	cluster.Must(s, err)
	writes, begun := s.podWrites(clientset), time.Now()
	s.change(set, func(template *corev1.PodTemplateSpec) { template.Spec.Containers[0].Image = databaseImage + ":v2" })
	for _, pod := range s.settled(name, pods, runs(databaseImage+":v2")) {
		if old, there := before[pod]; !there || old.UID != s.Pod(pod).UID {
			u.newPods++
		}
	}
	u.seconds, u.podWrites = time.Since(begun).Seconds(), s.podWrites(clientset)-writes
	patch(s, set, func(set *v1alpha1.CloneSet) { *set.Spec.Replicas = 0 })
	s.settled(name, 0)
	return u
}

// podWrites returns how many writes of pods the API server has accepted since it started.
func (s *suite) podWrites(clientset kubernetes.Interface) int {
	s.Helper()
	raw, err := clientset.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(s.Context())
	cluster.Must(s, err)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	cluster.Must(s, err)
	writes := map[string]bool{"POST": true, "PUT": true, "PATCH": true, "APPLY": true, "DELETE": true}
	sum := 0
	for _, m := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, pair := range m.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		if labels["resource"] == "pods" && writes[labels["verb"]] && labels["code"][0] == '2' {
			sum += int(m.GetCounter().GetValue())
		}
	}
	if sum == 0 {
		s.Fatal("apiserver_request_total has no writes of pods")
	}
	return sum
}

// TestEnvironmentFromLabel changes a label that an environment variable is read from, together with
// the image: the restarted container has the new value.
func TestEnvironmentFromLabel(t *testing.T) {
	t.Parallel()
	withEnvironment := func(template *corev1.PodTemplateSpec) {
		template.Labels["mode"] = "old"
		template.Spec.Containers[0].Env = []corev1.EnvVar{{
			Name:      "MODE",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['mode']"}},
		}}
		template.Spec.Containers[0].Command = []string{"sh", "-c", `echo "mode $MODE"; ` + idle}
	}
	for kind, set := range sets() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newSuite(t)
			image := s.newImage()
			switch set := set.(type) {
			case *v1alpha1.CloneSet:
				withEnvironment(&set.Spec.Template)
			case *v1beta1.StatefulSet:
				withEnvironment(&set.Spec.Template)
			}
			s.Create(set)
			before := s.Pod(s.settled("updated", 1)[0])
			s.change(set, func(template *corev1.PodTemplateSpec) {
				template.Labels["mode"] = "new"
				template.Spec.Containers[0].Image = image
			})
			s.settled("updated", 1, runs(image), restartedOnce(before))
			s.prints(before.Name, "mode new")
		})
	}
}

// prints waits until the container of a pod has printed a line. A container can be ready before that.
func (s *suite) prints(name, line string) {
	s.Helper()
	s.Eventually(fmt.Sprintf("pod %s prints %q", name, line), func(ctx context.Context) error {
		out, err := s.TryKubectl(ctx, "logs", name)
		if err == nil && strings.TrimSpace(out) != line {
			err = fmt.Errorf("output %q", out)
		}
		return err
	})
}

// TestFailedPodIsReplaced lets the kubelet reject a pod, whose host port another pod has. The pod is
// replaced until the port is free.
func TestFailedPodIsReplaced(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	port := corev1.ContainerPort{ContainerPort: 21017, HostPort: 21017}
	nodes := &corev1.NodeList{}
	cluster.Must(t, s.Client.List(t.Context(), nodes))
	holder := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "holder"}, Spec: template("holder").Spec}
	holder.Spec.NodeName = nodes.Items[0].Name
	holder.Spec.Containers[0].Ports = []corev1.ContainerPort{port}
	s.Create(holder)
	s.Eventually("the pod with the port is ready", func(context.Context) error { return ready(s.Pod("holder")) })
	set := newStatefulSet("rejected", 1, func(set *v1beta1.StatefulSet) {
		set.Spec.Template.Spec.NodeName = nodes.Items[0].Name
		set.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{port}
	})
	seen := map[string]bool{}
	s.Create(set)
	s.Eventually("the rejected pod is replaced", func(ctx context.Context) error {
		pods, err := s.pods(ctx, "rejected")
		for _, pod := range pods {
			seen[string(pod.UID)] = true
		}
		if err == nil && len(seen) < 2 {
			err = fmt.Errorf("pods seen: %v", seen)
		}
		return err
	})
	cluster.Must(t, s.Client.Delete(t.Context(), holder))
	s.settled("rejected", 1, func(pod *corev1.Pod) error {
		return await.ErrorIf(pod.Status.Phase != corev1.PodRunning, "pod %s: phase %s", pod.Name, pod.Status.Phase)
	})
}

// TestPullsFromAPrivateRegistry pulls with and without a secret, and updates a CloneSet in place to an image that was
// pulled before: its pods do not ask the registry.
func TestPullsFromAPrivateRegistry(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	r := s.startRegistry()
	v1, v2 := r.push("games/server", "v1", s.Namespace), r.push("games/server", "v2", s.Namespace)
	s.tags = append(s.tags, v1.name, v2.name)
	s.Create(r.secret("pull"), newPull("anonymous", v1))
	anonymous := s.pullEnds("anonymous", imagepull.ReasonNodesFailed)
	if failed, message := anonymous.Status.Failed, anonymous.Status.Message; failed != anonymous.Status.Desired ||
		!strings.Contains(message, "ErrImagePull") || !strings.Contains(strings.ToLower(message), "auth") {
		t.Errorf("a job without a secret has %d failed nodes of %d: %q", failed, anonymous.Status.Desired, message)
	}
	// Not earlier: a job needs no secret for an image that the node has.
	s.Create(newPull("with-secret", v1, "pull"))
	pulled := s.pullEnds("with-secret", imagepull.ReasonCompleted)
	if pulled.Status.Succeeded != pulled.Status.Desired || r.pulled(v1.layer) != int(pulled.Status.Desired) {
		t.Errorf("%d of %d nodes succeeded, and the layer was read %d times", pulled.Status.Succeeded, pulled.Status.Desired, r.pulled(v1.layer))
	}

	set := newCloneSet("server", 2, inPlace, func(set *v1alpha1.CloneSet) {
		set.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(1))
		spec := &set.Spec.Template.Spec
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
		spec.Containers[0].Image, spec.Containers[0].Command = v1.name, []string{"/busybox", "sleep", "3600"}
	})
	s.Create(set)
	names := s.settled("server", 2, runs(v1.name))
	patch(s, set, func(set *v1alpha1.CloneSet) {
		set.Spec.UpdateStrategy.Paused, set.Spec.Template.Spec.Containers[0].Image = true, v2.name
	})
	s.Eventually("the image is pulled before the update", func(ctx context.Context) error {
		if err := s.Client.Get(ctx, ctrl.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		for _, c := range set.Status.Conditions {
			if string(c.Type) == planning.PreDownloading && c.Reason == "Pulled" {
				return nil
			}
		}
		return fmt.Errorf("conditions %+v", set.Status.Conditions)
	})
	before := r.pulled(v2.layer)
	patch(s, set, func(set *v1alpha1.CloneSet) { set.Spec.UpdateStrategy.Paused = false })
	if after := s.settled("server", 2, runs(v2.name)); !slices.Equal(names, after) {
		t.Errorf("pods %v were replaced by %v", names, after)
	}
	if got := r.pulled(v2.layer); before == 0 || got != before {
		t.Errorf("the layer was read %d times before the update and %d times after it", before, got)
	}
	for _, name := range names {
		s.startsWithoutPull(name, v2.name)
	}
	s.Eventually("the nodes list the images", func(ctx context.Context) error { return s.list(ctx, v1.name) })
}

// newPull returns a job that pulls an image on all nodes, with one attempt.
func newPull(name string, image image, secrets ...string) *v1alpha1.ImagePullJob {
	return &v1alpha1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ImagePullJobSpec{
			Image: image.name, PullSecrets: secrets, Parallelism: ptr.To(intstr.FromString("100%")),
			PullPolicy: &v1alpha1.ImagePullJobPullPolicy{BackoffLimit: ptr.To[int32](0)},
		},
	}
}

// pullEnds waits until a job is complete, and expects the reason.
func (s *suite) pullEnds(name, reason string) *v1alpha1.ImagePullJob {
	s.Helper()
	job := &v1alpha1.ImagePullJob{}
	s.Eventually(name+" is complete", func(ctx context.Context) error {
		if err := s.Client.Get(ctx, s.Key(name), job); err != nil {
			return err
		}
		return await.ErrorIf(!meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ImagePullJobComplete), "status %+v", job.Status)
	})
	if c := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ImagePullJobComplete); c.Reason != reason {
		s.Fatalf("job %s ended with %+v, want the reason %s", name, c, reason)
	}
	return job
}

// startsWithoutPull expects the event of a pod that an image was on the node, and none that it was pulled.
func (s *suite) startsWithoutPull(pod, image string) {
	s.Helper()
	events := &corev1.EventList{}
	s.Eventually("an event about the image of pod "+pod, func(ctx context.Context) error {
		if err := s.Client.List(ctx, events, ctrl.InNamespace(s.Namespace), ctrl.MatchingFields{"involvedObject.name": pod}); err != nil {
			return err
		}
		if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return strings.Contains(e.Message, image) && strings.Contains(e.Message, "already present on machine")
		}) {
			return fmt.Errorf("%d events", len(events.Items))
		}
		return nil
	})
	for _, e := range events.Items {
		if e.Reason == "Pulling" && strings.Contains(e.Message, image) {
			s.Errorf("pod %s: %s", pod, e.Message)
		}
	}
}

// list expects that the status of each node lists the image.
func (s *suite) list(ctx context.Context, image string) error {
	nodes := &corev1.NodeList{}
	if err := s.Client.List(ctx, nodes); err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if !slices.ContainsFunc(node.Status.Images, func(i corev1.ContainerImage) bool { return slices.Contains(i.Names, image) }) {
			return fmt.Errorf("node %s has %d other images", node.Name, len(node.Status.Images))
		}
	}
	return nil
}
