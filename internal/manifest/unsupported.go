// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// fieldTree contains the fields that a local run supports, or that have no effect on a
// process. A nil entry includes all fields below it. The elements of a list share its entry.
type fieldTree map[string]fieldTree

// merge returns one level with the entries of all trees.
func merge(trees ...fieldTree) fieldTree {
	out := fieldTree{}
	for _, tree := range trees {
		maps.Copy(out, tree)
	}
	return out
}

// names returns entries that include all fields below them.
func names(all ...string) fieldTree {
	out := make(fieldTree, len(all))
	for _, name := range all {
		out[name] = nil
	}
	return out
}

// objectFields returns the fields of all kinds together: a kind without one of them refuses it when the
// object is decoded.
func objectFields() fieldTree {
	template := merge(names("metadata"), fieldTree{"spec": podSpecFields()})
	job := merge(names("parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished", "activeDeadlineSeconds"), fieldTree{"template": template})
	return merge(names("apiVersion", "kind", "metadata", "status"), fieldTree{"spec": merge(podSpecFields(), job,
		names("replicas", "selector", "serviceName", "ordinals", "reserveOrdinals", "volumeClaimTemplates", "persistentVolumeClaimRetentionPolicy"),
		names("namespace", "namespaceSelector", "specificNamespace", "patchPodMetadata", "customVersion"),
		fieldTree{"injectionStrategy": names("paused")},
		names("schedule", "timeZone", "startingDeadlineSeconds", "concurrencyPolicy", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"),
		fieldTree{"jobTemplate": merge(names("metadata"), fieldTree{"spec": job})},
	)})
}

func podSpecFields() fieldTree {
	return merge(
		names("restartPolicy", "terminationGracePeriodSeconds", "readinessGates", "serviceAccountName", "serviceAccount"),
		fieldTree{
			"containers":     containerFields(),
			"initContainers": containerFields(),
			"volumes": merge(names("name"), fieldTree{
				"emptyDir":              {},
				"persistentVolumeClaim": names("claimName"),
				"configMap":             names("name", "items", "optional", "defaultMode"),
				"secret":                names("secretName", "items", "optional", "defaultMode"),
			}),
		},
	)
}

func containerFields() fieldTree {
	probe := merge(
		names("exec", "grpc", "initialDelaySeconds", "timeoutSeconds", "periodSeconds",
			"successThreshold", "failureThreshold", "terminationGracePeriodSeconds"),
		fieldTree{"httpGet": names("path", "port", "scheme", "httpHeaders", "protocol"), "tcpSocket": names("port")},
	)
	hook := names("exec", "sleep")
	return merge(
		// A local run never pulls images, so that a warning would be useless.
		names("name", "image", "imagePullPolicy", "command", "args", "workingDir", "restartPolicy"),
		// Those of the containers of SidecarSets.
		names("podInjectPolicy", "shareVolumePolicy", "transferEnv"),
		fieldTree{
			"ports": names("name", "containerPort", "protocol"),
			"env": merge(names("name", "value"), fieldTree{
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

// checkFields records the fields of the object that a local run ignores.
func (r *reader) checkFields(at Place, object runtime.Object) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		r.addError(at, fmt.Errorf("convert object to check its fields: %w", err))
		return
	}
	for _, path := range unsupportedPaths("", content, objectFields()) {
		r.unsupported(at, path, "")
	}
}

// unsupportedPaths returns the paths of the value's fields that are not in the tree, sorted.
// It skips empty fields.
func unsupportedPaths(path string, value any, supported fieldTree) []string {
	if supported == nil {
		return nil
	}
	var found []string
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			below, ok := supported[name]
			at := name
			if path != "" {
				at = path + "." + name
			}
			switch {
			case ok:
				found = append(found, unsupportedPaths(at, v[name], below)...)
			case !empty(v[name]):
				found = append(found, at)
			}
		}
	case []any:
		for i, element := range v {
			found = append(found, unsupportedPaths(fmt.Sprintf("%s[%d]", path, i), element, supported)...)
		}
	}
	return found
}

// empty reports whether a value is empty: the converter writes some fields even if unset.
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
