// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"bytes"
	"cmp"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
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
		if old, there := before[pod]; !there || old.UID != s.get(pod).UID {
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
