// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Expand replaces the references $(NAME) in text with their values. It keeps a reference
// to an unknown name, and one without a closing parenthesis. It replaces $$ with $, so
// $$(NAME) is not a reference.
func Expand(text string, values map[string]string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		switch {
		case strings.HasPrefix(after, "$"):
			out.WriteByte('$')
			text = after[1:]
		case strings.HasPrefix(after, "("):
			name, rest, closed := strings.Cut(after[1:], ")")
			if !closed {
				out.WriteString("$(")
				text = after[1:]
				continue
			}
			if value, known := values[name]; known {
				out.WriteString(value)
			} else {
				out.WriteString("$(" + name + ")")
			}
			text = rest
		default:
			out.WriteByte('$')
			text = after
		}
	}
}

// FieldValue returns the value of a pod's field that a variable can refer to. The error
// lists the supported fields.
func FieldValue(pod *corev1.Pod, path string) (string, error) {
	if key, ok := subscript(path, "metadata.labels"); ok {
		return pod.Labels[key], nil
	}
	if key, ok := subscript(path, "metadata.annotations"); ok {
		return pod.Annotations[key], nil
	}
	plain := map[string]string{
		"metadata.name":           pod.Name,
		"metadata.namespace":      pod.Namespace,
		"metadata.uid":            string(pod.UID),
		"spec.nodeName":           pod.Spec.NodeName,
		"spec.serviceAccountName": pod.Spec.ServiceAccountName,
		"status.hostIP":           pod.Status.HostIP,
		"status.hostIPs":          pod.Status.HostIP,
		"status.podIP":            pod.Status.PodIP,
		"status.podIPs":           pod.Status.PodIP,
	}
	value, known := plain[path]
	if !known {
		return "", fmt.Errorf("must be one of %s, metadata.labels['<key>'], metadata.annotations['<key>']",
			strings.Join(slices.Sorted(maps.Keys(plain)), ", "))
	}
	return value, nil
}

// subscript returns the key in path['key'].
func subscript(path, name string) (string, bool) {
	rest, found := strings.CutPrefix(path, name+"['")
	if !found {
		return "", false
	}
	key, found := strings.CutSuffix(rest, "']")
	return key, found && key != ""
}
