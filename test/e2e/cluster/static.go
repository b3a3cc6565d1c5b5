// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// AnyNode returns the name of a node.
func (c *Cluster) AnyNode() string {
	c.Helper()
	var nodes corev1.NodeList
	Must(c, c.Client.List(c.Context(), &nodes))
	return nodes.Items[0].Name
}

// RunStatic runs the pod as a static pod of the node, in the test's namespace, until the test
// ends. The name of its mirror pod ends with a dash and the name of the node.
func (c *Cluster) RunStatic(node string, pod *corev1.Pod) {
	c.Helper()
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Namespace = c.Namespace
	manifest, err := yaml.Marshal(pod)
	Must(c, err)
	folder := filepath.Join(c.Dir, "nodes", node, "static-pods")
	Must(c, os.MkdirAll(folder, 0o755))
	path := filepath.Join(folder, c.Namespace+"-"+pod.Name+".yaml")
	Must(c, os.WriteFile(path, manifest, 0o600))
	c.Cleanup(func() { Must(c, os.Remove(path)) })
}
