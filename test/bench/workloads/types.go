// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// The rows about the types of templates in CRDs.
const (
	rowTypesMemory = "API server's heap after a garbage collection, all CRDs installed"
	rowTypesStart  = "API server's processor time from its start until all CRDs are served"
	rowTypesCreate = "API server's processor time per creation of a CloneSet"
)

// typed is an API server whose CRDs have types of templates, or not.
type typed struct {
	server    *env.Env
	clientset kubernetes.Interface
	namespace string
	// start is the processor time of the start in seconds, heap the bytes in use, and creation the times per object in
	// microseconds, one of each round.
	start, heap float64
	creation    []float64
}

// measureTypes measures what the types of templates, containers and claims in the CRDs cost the API server. Both sides are
// measured in turn.
func measureTypes(b *harness.Bench) harness.Output {
	sides := []*typed{openTyped(b), openTyped(b, env.Types())}
	rounds := harness.Pick(b, 9, 1)
	for round := range rounds {
		for n := range sides {
			sides[(n+round)%len(sides)].play(b, round)
		}
	}
	bare, full := sides[0], sides[1]
	return harness.Output{
		Results: []harness.Result{
			{Name: rowTypesMemory, Value: full.heap / harness.Mebibyte, Unit: "MiB", Floor: bare.heap / harness.Mebibyte, FloorName: "without types"},
			{Name: rowTypesStart, Value: full.start, Unit: "s", Floor: bare.start, FloorName: "without types"},
			{
				Name: rowTypesCreate, Value: middle(full.creation), Unit: "µs", Floor: middle(bare.creation), FloorName: "without types",
				Noise: halfRange(full.creation),
			},
		},
		Notes: []string{fmt.Sprintf("The creations are medians of %d rounds of each side in turn. A CloneSet has a template with 12 variables.", rounds)},
	}
}

// openTyped starts an API server. Its heap is that after a first object.
func openTyped(b *harness.Bench, options ...env.Option) *typed {
	b.Helper()
	side := &typed{server: env.Start(b.T, options...)}
	var err error
	side.clientset, err = kubernetes.NewForConfig(side.server.Config)
	b.Must(err)
	side.namespace = side.server.Namespace(b.T)
	side.create(b, "first", 1)
	side.start = side.metric(b, "process_cpu_seconds_total")
	side.get(b, "/debug/pprof/heap", "gc", "1")
	side.heap = side.metric(b, "go_memstats_heap_alloc_bytes")
	return side
}

func (s *typed) get(b *harness.Bench, path, parameter, value string) string {
	b.Helper()
	text, err := s.clientset.Discovery().RESTClient().Get().AbsPath(path).Param(parameter, value).DoRaw(b.Context())
	b.Must(err)
	return string(text)
}

// metric returns a metric without labels.
func (s *typed) metric(b *harness.Bench, name string) float64 {
	b.Helper()
	for line := range strings.Lines(s.get(b, "/metrics", "name", name)) {
		var value float64
		if n, _ := fmt.Sscanf(line, name+" %g", &value); n == 1 {
			return value
		}
	}
	b.Fatalf("the API server has no metric %s", name)
	return 0
}

func (s *typed) create(b *harness.Bench, prefix string, n int) {
	b.Helper()
	labels := map[string]string{"app": prefix}
	container := corev1.Container{Name: "main", Image: "registry.example.com/team/main:1"}
	for i := range 12 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: "value"})
	}
	b.Each(n, harness.Clients, func(ctx context.Context, i int) error {
		return s.server.Client.Create(ctx, &v1alpha1.CloneSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("%s-%d", prefix, i), Labels: labels},
			Spec: v1alpha1.CloneSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}},
				},
			},
		})
	})
}

// play measures one round.
func (s *typed) play(b *harness.Bench, round int) {
	b.Helper()
	count, prefix := harness.Pick(b, 1000, 10), fmt.Sprintf("round-%d", round)
	before := s.metric(b, "process_cpu_seconds_total")
	s.create(b, prefix, count)
	s.creation = append(s.creation, 1e6*(s.metric(b, "process_cpu_seconds_total")-before)/float64(count))
	b.Must(s.server.Client.DeleteAllOf(b.Context(), &v1alpha1.CloneSet{}, client.InNamespace(s.namespace), client.MatchingLabels{"app": prefix}))
}
