// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

const (
	// podsVariable sets the number of pods of TestInPlaceOrRecreated.
	podsVariable = "SEAMARK_COMPARE_PODS"
	// resultsVariable names the file that it writes.
	resultsVariable = "SEAMARK_COMPARE_RESULTS"
)

// databaseImage is the image of the example database. Its versions v1 and v2 have different IDs, as
// those of a new build have. An update in place to another name of the same ID takes longer.
const databaseImage = "docker.io/seamark/example-database"

// comparison is the result of TestInPlaceOrRecreated.
type comparison struct {
	// Pods is the number of pods of the set. MaxUnavailable is how many of them may be
	// unavailable.
	Pods           int    `json:"pods"`
	MaxUnavailable string `json:"maxUnavailable"`
	// Kubernetes is the version of the cluster.
	Kubernetes string `json:"kubernetes"`
	Recreate   update `json:"recreate"`
	InPlace    update `json:"inPlace"`
}

// update is what one change of the image cost.
type update struct {
	// Seconds is the time until every pod runs the new image and is ready.
	Seconds float64 `json:"seconds"`
	// PodWrites is the number of successful writes of pods, by all programs.
	PodWrites int `json:"podWrites"`
	// NewPods is the number of pods that were created.
	NewPods int `json:"newPods"`
}

// TestInPlaceOrRecreated changes the image of a set, once with each policy. It runs alone, because
// it counts requests of the whole cluster. It only reports the times, which depend on the machine:
// make bench compares those of 100 pods.
func TestInPlaceOrRecreated(t *testing.T) {
	s := newSuite(t)
	c := comparison{Pods: 10, MaxUnavailable: v1alpha1.DefaultCloneSetMaxUnavailable}
	if value := os.Getenv(podsVariable); value != "" {
		pods, err := strconv.Atoi(value)
		if err != nil || pods < 1 {
			t.Fatalf("%s: %q is invalid: must be a number of at least 1", podsVariable, value)
		}
		c.Pods = pods
	}
	clientset, err := kubernetes.NewForConfig(s.Config)
	cluster.Must(t, err)
	version, err := clientset.Discovery().ServerVersion()
	cluster.Must(t, err)
	c.Kubernetes = version.GitVersion
	c.Pods = min(c.Pods, s.capacity())
	c.Recreate = s.measure(clientset, "recreated", v1alpha1.RecreateCloneSetUpdateStrategyType, c.Pods)
	c.InPlace = s.measure(clientset, "in-place", v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType, c.Pods)

	out, err := json.MarshalIndent(c, "", "  ")
	cluster.Must(t, err)
	t.Logf("%s", out)
	if path := os.Getenv(resultsVariable); path != "" {
		cluster.Must(t, os.WriteFile(path, append(out, '\n'), 0o644))
	}
	if c.InPlace.NewPods != 0 || c.Recreate.NewPods != c.Pods {
		t.Errorf("%d pods were created in place and %d recreated, want 0 and %d", c.InPlace.NewPods, c.Recreate.NewPods, c.Pods)
	}
	if c.InPlace.PodWrites >= c.Recreate.PodWrites {
		t.Errorf("%d writes of pods in place, want fewer than %d", c.InPlace.PodWrites, c.Recreate.PodWrites)
	}
}

// capacity returns how many more pods the nodes accept.
func (s *suite) capacity() int {
	s.Helper()
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	cluster.Must(s, s.Client.List(s.Context(), nodes))
	cluster.Must(s, s.Client.List(s.Context(), pods))
	free := -len(pods.Items)
	for _, node := range nodes.Items {
		free += int(node.Status.Allocatable.Pods().Value())
	}
	return free
}

// measure creates a set, changes its image, and deletes the set.
func (s *suite) measure(clientset kubernetes.Interface, name string, policy v1alpha1.CloneSetUpdateStrategyType, pods int) update {
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
	s.settle(set, pods)
	before := s.podsByUID(name)
	writes, begun := s.podWrites(clientset), time.Now()

	s.change(set, func(template *corev1.PodTemplateSpec) { template.Spec.Containers[0].Image = databaseImage + ":v2" })
	s.settle(set, pods)
	result := update{
		Seconds:   float64(time.Since(begun).Round(100*time.Millisecond)) / float64(time.Second),
		PodWrites: s.podWrites(clientset) - writes,
	}
	for uid := range s.podsByUID(name) {
		if !before[uid] {
			result.NewPods++
		}
	}
	cluster.Must(s, s.Client.Delete(s.Context(), set))
	s.Eventually("the pods of "+name+" are deleted", func(ctx context.Context) error {
		left, err := s.pods(ctx, name)
		if err == nil && len(left) != 0 {
			err = fmt.Errorf("%d pods", len(left))
		}
		return err
	})
	return result
}

// settle waits until a set has as many updated and ready pods. A wait fails only after a time that
// depends on the number of pods.
func (s *suite) settle(set *v1alpha1.CloneSet, pods int) {
	s.Helper()
	timeout := cluster.Timeout + time.Duration(pods)*3*time.Second
	await.Poll{Interval: 100 * time.Millisecond, Timeout: timeout}.Success(s, "set "+set.Name+" settles", func(ctx context.Context) error {
		if err := s.updated(ctx, set, int32(pods)); err != nil {
			return err
		}
		if int(set.Status.Replicas) != pods {
			return fmt.Errorf("%d replicas, want %d", set.Status.Replicas, pods)
		}
		return nil
	})
}

func (s *suite) podsByUID(app string) map[string]bool {
	s.Helper()
	pods, err := s.pods(s.Context(), app)
	cluster.Must(s, err)
	uids := map[string]bool{}
	for _, pod := range pods {
		uids[string(pod.UID)] = true
	}
	return uids
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
