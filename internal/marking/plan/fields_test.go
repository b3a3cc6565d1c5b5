// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/config"
	"github.com/seamark-dev/seamark/internal/manifest/schema"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// decision is what happens to a field of a probe.
type decision struct {
	// probe has the field, with a value that is not its default.
	probe string
	// refused is a part of the message of the CRD. If it is empty, the field takes effect.
	refused string
}

// decisions has an entry for every field of core/v1 Probe, by its path in JSON.
func decisions() map[string]decision {
	return map[string]decision{
		"exec.command":                  {probe: `{"exec":{"command":["a"]}}`},
		"httpGet.path":                  {probe: `{"httpGet":{"port":80,"path":"/a"}}`},
		"httpGet.port":                  {probe: `{"httpGet":{"port":80}}`},
		"httpGet.host":                  {probe: `{"httpGet":{"port":80,"host":"a"}}`, refused: "must not be set"},
		"httpGet.scheme":                {probe: `{"httpGet":{"port":80,"scheme":"HTTPS"}}`},
		"httpGet.httpHeaders.name":      {probe: `{"httpGet":{"port":80,"httpHeaders":[{"name":"a","value":"b"}]}}`},
		"httpGet.httpHeaders.value":     {probe: `{"httpGet":{"port":80,"httpHeaders":[{"name":"a","value":"b"}]}}`},
		"httpGet.protocol":              {probe: `{"httpGet":{"port":80,"protocol":"HTTP2"}}`},
		"tcpSocket.port":                {probe: `{"tcpSocket":{"port":80}}`},
		"tcpSocket.host":                {probe: `{"tcpSocket":{"port":80,"host":"a"}}`, refused: "must not be set"},
		"grpc.port":                     {probe: `{"grpc":{"port":80}}`},
		"grpc.service":                  {probe: `{"grpc":{"port":80,"service":"a"}}`},
		"grpc.mode":                     {probe: `{"grpc":{"port":80,"mode":"TLS"}}`},
		"initialDelaySeconds":           {probe: `{"exec":{"command":["a"]},"initialDelaySeconds":7}`},
		"timeoutSeconds":                {probe: `{"exec":{"command":["a"]},"timeoutSeconds":7}`},
		"periodSeconds":                 {probe: `{"exec":{"command":["a"]},"periodSeconds":7}`},
		"successThreshold":              {probe: `{"exec":{"command":["a"]},"successThreshold":7}`},
		"failureThreshold":              {probe: `{"exec":{"command":["a"]},"failureThreshold":7}`},
		"terminationGracePeriodSeconds": {probe: `{"exec":{"command":["a"]},"terminationGracePeriodSeconds":7}`, refused: "must not be set"},
	}
}

// TestFieldsTakeEffectOrAreRefused: the API server accepts no field of a probe that does nothing.
// A field that a new version of Kubernetes adds needs a decision.
func TestFieldsTakeEffectOrAreRefused(t *testing.T) {
	want := fieldPaths(reflect.TypeFor[corev1.Probe](), "")
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(decisions()))); diff != "" {
		t.Fatalf("fields of core/v1 Probe with a decision (-fields +decisions):\n%s", diff)
	}
	markers, err := schema.New(config.Definition("podprobemarkers.apps.kruise.io"), "v1alpha1")
	expect.NoError(t, err)
	for path, decided := range decisions() {
		t.Run(path, func(t *testing.T) {
			var spec corev1.Probe
			expect.NoError(t, json.Unmarshal([]byte(decided.probe), &spec))
			var messages []string
			for _, err := range markers.Check(t.Context(), markerObject(t, decided.probe)) {
				messages = append(messages, err.Error())
			}
			got := strings.Join(messages, "; ")
			if decided.refused != "" {
				if !strings.Contains(got, decided.refused) || !strings.Contains(got, path) {
					t.Errorf("the CRD answers %q, want %q about %s", got, decided.refused, path)
				}
				return
			}
			expect.Equal(t, "the CRD rejects the field", "", got)
			other := *spec.DeepCopy()
			change(t, reflect.ValueOf(&other).Elem(), strings.Split(path, "."))
			if diff := cmp.Diff(taskOf(t, spec), taskOf(t, other)); diff == "" {
				t.Error("the field has no effect on what the agent runs")
			}
		})
	}
}

// fieldPaths returns the paths of the fields in JSON that have no fields of their own.
func fieldPaths(of reflect.Type, prefix string) []string {
	var paths []string
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		path := strings.TrimPrefix(prefix+"."+name, ".")
		if name == "" {
			path = prefix
		}
		inner := field.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[intstr.IntOrString]() {
			paths = append(paths, fieldPaths(inner, path)...)
		} else {
			paths = append(paths, path)
		}
	}
	return paths
}

// change gives the field at the path, which is set, another valid value.
func change(t *testing.T, value reflect.Value, path []string) {
	t.Helper()
	for value.Kind() == reflect.Pointer || value.Kind() == reflect.Slice && len(path) > 0 {
		if value.Kind() == reflect.Slice {
			value = value.Index(0)
		} else if len(path) == 0 {
			value.SetZero()
			return
		} else {
			value = value.Elem()
		}
	}
	if len(path) > 0 {
		field, found := value.Type().FieldByNameFunc(func(name string) bool {
			f, _ := value.Type().FieldByName(name)
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return tag == path[0]
		})
		if !found {
			t.Fatalf("%s has no field %s", value.Type(), path[0])
		}
		change(t, value.FieldByIndex(field.Index), path[1:])
		return
	}
	switch other := value.Addr().Interface().(type) {
	case *intstr.IntOrString:
		*other = intstr.FromInt32(other.IntVal + 1)
	case *int32:
		*other++
	case *[]string:
		*other = append(*other, "b")
	case *string:
		*other += "b"
	case *corev1.URIScheme:
		*other = corev1.URISchemeHTTP
	default:
		t.Fatalf("no other value of type %s", value.Type())
	}
}

// taskOf returns what the agent runs for the probe, as text.
func taskOf(t *testing.T, spec corev1.Probe) string {
	t.Helper()
	resolved, problem := plan.Resolve(builders.Pod("ns", "a").Build(), "main", &spec, plan.KubernetesDefaults())
	if problem.Reason != "" {
		t.Fatalf("the probe cannot be planned: %v", problem)
	}
	task, err := worker.NewTask(identity.Key{}, types.NamespacedName{}, &v1alpha1.ContainerProbeSpec{Probe: resolved}, "10.0.0.1")
	expect.NoError(t, err)
	target := task.Target
	text, err := json.Marshal([]any{task.Policy, target.Timeout, target.Exec, target.HTTP, target.TCP, target.GRPC})
	expect.NoError(t, err)
	return string(text)
}

func markerObject(t *testing.T, spec string) map[string]any {
	t.Helper()
	marker := builders.Marker("ns", "web").Probe(builders.Probe("p").Condition("game.io/p")).Build()
	marker.APIVersion, marker.Kind = v1alpha1.GroupVersion().String(), "PodProbeMarker"
	encoded, err := json.Marshal(marker)
	expect.NoError(t, err)
	var object map[string]any
	expect.NoError(t, utiljson.Unmarshal(encoded, &object))
	var probe map[string]any
	expect.NoError(t, utiljson.Unmarshal([]byte(spec), &probe))
	object["spec"].(map[string]any)["probes"].([]any)[0].(map[string]any)["probe"] = probe
	return object
}
