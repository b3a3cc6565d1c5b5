// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// fields is a tree of the fields that a local run honours, or that mean nothing to it. Nil
// stands for a whole part of an object. The elements of a list share the list's entry.
type fields map[string]fields

// merged returns one level with the entries of all.
func merged(all ...fields) fields {
	out := fields{}
	for _, some := range all {
		maps.Copy(out, some)
	}
	return out
}

// names returns entries for whole parts.
func names(all ...string) fields {
	out := make(fields, len(all))
	for _, name := range all {
		out[name] = nil
	}
	return out
}

func podFields() fields {
	return merged(names("apiVersion", "kind", "metadata", "status"), fields{"spec": podSpecFields()})
}

func deploymentFields() fields {
	return merged(names("apiVersion", "kind", "metadata", "status"), fields{
		"spec": merged(names("replicas", "selector"), fields{"template": templateFields()}),
	})
}

func statefulSetFields() fields {
	return merged(names("apiVersion", "kind", "metadata", "status"), fields{
		"spec": merged(names("replicas", "selector", "serviceName", "ordinals"), fields{
			"template": templateFields(),
			// The zero value of a field that is always written.
			"updateStrategy": {},
		}),
	})
}

func templateFields() fields {
	return merged(names("metadata"), fields{"spec": podSpecFields()})
}

func podSpecFields() fields {
	return merged(
		names("restartPolicy", "terminationGracePeriodSeconds", "readinessGates", "serviceAccountName", "serviceAccount"),
		fields{
			"containers":     containerFields(),
			"initContainers": containerFields(),
			"volumes": merged(names("name"), fields{
				"emptyDir":  {},
				"configMap": names("name", "items", "optional", "defaultMode"),
				"secret":    names("secretName", "items", "optional", "defaultMode"),
			}),
		},
	)
}

func containerFields() fields {
	probe := merged(
		names("exec", "grpc", "initialDelaySeconds", "timeoutSeconds", "periodSeconds",
			"successThreshold", "failureThreshold", "terminationGracePeriodSeconds"),
		fields{"httpGet": names("path", "port", "scheme", "httpHeaders"), "tcpSocket": names("port")},
	)
	hook := names("exec", "sleep")
	return merged(
		// The image is for a cluster: that it is not pulled is no news.
		names("name", "image", "imagePullPolicy", "command", "args", "workingDir", "restartPolicy"),
		fields{
			"ports": names("name", "containerPort", "protocol"),
			"env": merged(names("name", "value"), fields{
				"valueFrom": names("fieldRef", "configMapKeyRef", "secretKeyRef"),
			}),
			"envFrom":        nil,
			"livenessProbe":  probe,
			"readinessProbe": probe,
			"startupProbe":   probe,
			"lifecycle":      {"postStart": hook, "preStop": hook},
			"volumeMounts":   names("name", "mountPath"),
		},
	)
}

// look names the fields of the object that are not among those honoured.
func (r *reader) look(at place, object runtime.Object, honoured fields) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		r.refuse(at, fmt.Errorf("look for fields that are ignored: %w", err))
		return
	}
	for _, path := range others("", content, honoured) {
		r.unsupported(at, path)
	}
}

// others returns the paths of the value's fields that are not in the tree, in order. A
// field that is set to nothing is none.
func others(path string, value any, honoured fields) []string {
	if honoured == nil {
		return nil
	}
	var found []string
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			below, ok := honoured[name]
			at := name
			if path != "" {
				at = path + "." + name
			}
			switch {
			case ok:
				found = append(found, others(at, v[name], below)...)
			case !empty(v[name]):
				found = append(found, at)
			}
		}
	case []any:
		for i, element := range v {
			found = append(found, others(fmt.Sprintf("%s[%d]", path, i), element, honoured)...)
		}
	}
	return found
}

// empty tells whether a value says nothing: the converter writes some fields always.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
