// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/expect"
)

// validMarker has every part of a marker.
const validMarker = `
apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata:
  name: marker
spec:
  selector:
    matchLabels: {app: game}
    matchExpressions:
    - {key: tier, operator: In, values: [front, back]}
  probes:
  - name: idle
    containerName: server
    probe:
      exec: {command: [cat, /tmp/idle]}
    podConditionType: game.io/idle
    markerPolicy:
    - state: Succeeded
      labels: {game.io/idle: "true"}
      annotations: {controller.kubernetes.io/pod-deletion-cost: "-10"}
    - state: Failed
      labels: {game.io/idle: "false"}
  - name: web
    containerName: server
    probe:
      httpGet: {port: http, scheme: HTTPS, path: /, httpHeaders: [{name: Host, value: game.io}]}
    podConditionType: game.io/web
  - name: socket
    containerName: server
    probe:
      tcpSocket: {port: 7777}
    podConditionType: game.io/socket
  - name: health
    containerName: server
    probe:
      grpc: {port: 7778}
    podConditionType: game.io/health
`

// edit changes one field of an object. The path has the form of the API server's errors:
// spec.probes[0].name.
type edit struct {
	path  string
	value any
}

// remove as the value of an edit removes the field.
type remove struct{}

var step = regexp.MustCompile(`[^.\[\]]+`)

// apply applies the edit. Every step of the path except the last must exist.
func (e edit) apply(object map[string]any) error {
	keys := step.FindAllString(e.path, -1)
	var at any = object
	for _, key := range keys[:len(keys)-1] {
		switch holder := at.(type) {
		case map[string]any:
			at = holder[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(holder) {
				return fmt.Errorf("edit %s: no element %s", e.path, key)
			}
			at = holder[i]
		}
	}
	last := keys[len(keys)-1]
	switch holder := at.(type) {
	case map[string]any:
		if _, ok := e.value.(remove); ok {
			delete(holder, last)
		} else {
			holder[last] = e.value
		}
		return nil
	case []any:
		i, err := strconv.Atoi(last)
		if err != nil || i >= len(holder) {
			return fmt.Errorf("edit %s: no element %s", e.path, last)
		}
		holder[i] = e.value
		return nil
	default:
		return fmt.Errorf("edit %s: no such field", e.path)
	}
}

func marker(t *testing.T, namespace string, edits ...edit) *unstructured.Unstructured {
	t.Helper()
	return parsed(t, validMarker, namespace, edits...)
}

// create creates the object in a dry run. Unknown fields are an error.
func create(ctx context.Context, object client.Object) error {
	return client.WithFieldValidation(server.Client, metav1.FieldValidationStrict).Create(ctx, object, client.DryRunAll)
}

// causes returns the causes in an Invalid response, except the note that rules were not checked
// because of the other causes.
func causes(err error) ([]metav1.StatusCause, error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || !apierrors.IsInvalid(err) {
		return nil, fmt.Errorf("want an Invalid response, got: %w", err)
	}
	var all []metav1.StatusCause
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "<nil>" {
			all = append(all, cause)
		}
	}
	return all, nil
}

func keys(n int) map[string]any {
	all := map[string]any{}
	for i := range n {
		all[fmt.Sprintf("game.io/key-%d", i)] = "value"
	}
	return all
}

// manyProbes returns n small valid probes.
func manyProbes(n int) []any {
	probes := make([]any, n)
	for i := range probes {
		probes[i] = map[string]any{
			"name": fmt.Sprintf("probe-%d", i), "containerName": "main",
			"probe":            map[string]any{"exec": map[string]any{"command": []any{"true"}}},
			"podConditionType": fmt.Sprintf("game.io/probe-%d", i),
		}
	}
	return probes
}

func TestValidMarkersAreAccepted(t *testing.T) {
	t.Parallel()
	const (
		policy = "spec.probes[0].markerPolicy"
		http   = "spec.probes[1].probe.httpGet"
	)
	for name, edits := range map[string][]edit{
		"unchanged":        nil,
		"matchLabels only": {{"spec.selector.matchExpressions", remove{}}},
		"Exists only":      {{"spec.selector", map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Exists"}}}}},
		"DoesNotExist only": {{
			"spec.selector", map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "DoesNotExist", "values": []any{}}}},
		}},
		"NotIn":             {{"spec.selector.matchExpressions[0].operator", "NotIn"}},
		"empty label value": {{"spec.selector.matchLabels.app", ""}},
		"one probe":         {{"spec.probes", manyProbes(1)}},
		"no policy":         {{policy, remove{}}},
		"empty policy":      {{policy, []any{}}},
		"policy only":       {{"spec.probes[0].podConditionType", ""}},
		"Succeeded only":    {{policy, []any{map[string]any{"state": "Succeeded", "labels": map[string]any{"healthy": "true"}}}}},
		"Unknown only":      {{policy, []any{map[string]any{"state": "Unknown", "labels": map[string]any{"healthy": "unknown"}}}}},
		"values from messages": {{policy + "[0].labelsFrom", []any{
			map[string]any{"key": "game.io/map", "jsonPath": ".maps[0]['a.b/c'].name", "allowedValues": []any{"dust", ""}}, map[string]any{"key": "a"}}},
			{policy + "[0].annotationsFrom", []any{map[string]any{"key": "game.io/map", "jsonPath": "", "allowedValues": []any{"any text"}}}}},
		"exclusive": {{policy, []any{
			map[string]any{"state": "Succeeded", "labels": map[string]any{"role": "primary"}, "exclusive": map[string]any{}},
			map[string]any{
				"state": "Failed", "labels": map[string]any{"role": "replica"}, "exclusive": map[string]any{
					"perLabel": "db.io/shard", "termFrom": map[string]any{"jsonPath": ".term"},
				},
			}}}},
		"name with prefix":              {{"spec.probes[0].name", "game.io/Is_idle.now"}},
		"one-letter name":               {{"spec.probes[0].name", "A"}},
		"condition type without prefix": {{"spec.probes[0].podConditionType", "GameIdle"}},
		"port 65535":                    {{http + ".port", 65535}},
		"port 1":                        {{http + ".port", 1}},
		"port name with -":              {{http + ".port", "http-8-alt"}},
		"port name of 15 characters":    {{http + ".port", "abcdefghijklmno"}},
		"no scheme and no path":         {{http + ".scheme", remove{}}, {http + ".path", remove{}}},
		"empty host":                    {{http + ".host", ""}},
		"repeated header, empty values": {{
			http + ".httpHeaders", []any{map[string]any{"name": "Accept", "value": ""}, map[string]any{"name": "Accept", "value": ""}},
		}},
		"gRPC service":           {{"spec.probes[3].probe.grpc.service", "game.v1.Match"}},
		"gRPC with TLS":          {{"spec.probes[3].probe.grpc.mode", "TLS"}},
		"HTTP/2 without TLS":     {{http + ".protocol", "HTTP2"}, {http + ".scheme", "HTTP"}},
		"zero values":            {{"spec.probes[0].probe.periodSeconds", 0}, {"spec.probes[0].probe.failureThreshold", 0}},
		"shortest time to stale": {{"spec.probes[0].staleAfterSeconds", 10}},
		"startup policies":       {{"spec.probes[0].startupPolicy", "WaitForStarted"}, {"spec.probes[1].startupPolicy", "Ignore"}},
		"longest timeout":        {{"spec.probes[0].probe.timeoutSeconds", 300}},
		"shortest times": {
			{"spec.probes[0].probe.periodMilliseconds", 500}, {"spec.probes[0].probe.timeoutMilliseconds", 500},
			{"spec.probes[2].probe.periodMilliseconds", 100}, {"spec.probes[2].probe.timeoutMilliseconds", 100},
		},
		"successThreshold above 1":  {{"spec.probes[0].probe.successThreshold", 3}},
		"mixed-case annotation key": {{annotation, map[string]any{"Game.io/Idle": "yes"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect.Success(t, create(t.Context(), marker(t, server.Namespace(t), edits...)))
		})
	}
}

// TestLargestMarkerIsAccepted fills every field to its limit, so that the cost of the rules is
// the highest: the API server rejects an object whose rules exceed the cost budget.
func TestLargestMarkerIsAccepted(t *testing.T) {
	t.Parallel()
	object := marker(t, server.Namespace(t),
		edit{"spec.selector", largestSelector()},
		edit{"spec.probes", largestProbes()},
	)
	expect.Success(t, create(t.Context(), object))
}

func largestKey(end string, i int) string {
	prefix := strings.Repeat("a.", 126) + end
	return fmt.Sprintf("%s/%063d", prefix, i)
}

// largestLabels returns n labels of maximum length whose prefixes have the end.
func largestLabels(end string, n int) map[string]any {
	all := map[string]any{}
	for i := range n {
		all[largestKey(end, i)] = strings.Repeat("v", 63)
	}
	return all
}

func largestSelector() map[string]any {
	expressions := make([]any, 16)
	for i := range expressions {
		expressions[i] = map[string]any{
			"key": largestKey("a", i), "operator": "In", "values": repeat(strings.Repeat("v", 63), 128),
		}
	}
	return map[string]any{"matchLabels": largestLabels("a", 64), "matchExpressions": expressions}
}

// largestProbes returns the maximum number of probes, marks and headers. Values that no rule
// reads are short, so that the request stays below the API server's size limit.
func largestProbes() []any {
	probes := make([]any, 32)
	for i := range probes {
		probes[i] = map[string]any{
			"name":             fmt.Sprintf("%0253d", i),
			"containerName":    strings.Repeat("c", 63),
			"podConditionType": largestKey("a", i),
			"probe": map[string]any{"httpGet": map[string]any{
				"port": strings.Repeat("p", 15),
				"httpHeaders": repeat(map[string]any{
					"name": strings.Repeat("h", 256), "value": strings.Repeat("v", 64),
				}, 16),
			}},
			"markerPolicy": []any{
				map[string]any{"state": "Succeeded", "labels": largestLabels("b", 32)},
				map[string]any{"state": "Failed", "annotations": largestLabels("a", 10)},
			},
		}
	}
	return probes
}
