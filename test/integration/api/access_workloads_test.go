// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

func workloadsRights() rights {
	sets := rights{}
	for _, kind := range []string{"clonesets", "statefulsets"} {
		sets = join(sets,
			rightsOf("apps.kruise.io", kind, "get", "list", "watch"),
			rightsOf("apps.kruise.io", kind+"/status", "patch"),
			rightsOf("apps.kruise.io", kind+"/finalizers", "update"),
		)
	}
	return join(basic(), sets,
		rightsOf("", "pods", "get", "list", "watch", "create", "patch", "delete"),
		rightsOf("", "pods/status", "patch"),
		rightsOf("", "pods/resize", "patch"),
		rightsOf("", "persistentvolumeclaims", "get", "list", "watch", "create", "patch"),
		rightsOf("apps", "controllerrevisions", "get", "list", "watch", "create", "patch", "delete"),
		rightsOf("apps.kruise.io", "podprobemarkers", "get", "list", "watch"),
		rightsOf("", "nodes", "get", "list", "watch"),
		rightsOf("", "events", "create", "patch"),
		rightsOf("coordination.k8s.io", "leases/kruise-manager", "get"),
	)
}
