// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
