// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import "github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"

func workloadsRights() rights {
	sets := rights{}
	for _, kind := range []string{"clonesets", "statefulsets"} {
		sets = join(sets,
			rightsOf("apps.kruise.io", kind, "get", "list", "watch"),
			rightsOf("apps.kruise.io", kind+"/status", "patch"),
			rightsOf("apps.kruise.io", kind+"/finalizers", "update"),
		)
	}
	// config/cronjobs adds rights for AdvancedCronJobs.
	sets = join(sets,
		rightsOf("apps.kruise.io", "advancedcronjobs", "get", "list", "watch"),
		rightsOf("apps.kruise.io", "advancedcronjobs/status", "patch"),
		rightsOf("apps.kruise.io", "advancedcronjobs/finalizers", "update"),
		rightsOf("batch", "jobs", "get", "list", "watch", "create", "delete"),
	)
	// config/daemonsets adds rights for DaemonSets.
	sets = join(sets,
		rightsOf("apps.kruise.io", "daemonsets", "get", "list", "watch"),
		rightsOf("apps.kruise.io", "daemonsets/status", "patch"),
		rightsOf("apps.kruise.io", "daemonsets/finalizers", "update"),
	)
	// config/broadcastjobs adds rights for BroadcastJobs, of which config/cronjobs creates some.
	sets = join(sets,
		rightsOf("apps.kruise.io", "broadcastjobs", "get", "list", "watch", "create", "delete"),
		rightsOf("apps.kruise.io", "broadcastjobs/status", "patch"),
		rightsOf("apps.kruise.io", "broadcastjobs/finalizers", "update"),
	)
	// config/imagepulls adds rights for ImagePullJobs.
	sets = join(sets,
		rightsOf("apps.kruise.io", "imagepulljobs", "get", "list", "watch", "create", "patch", "delete"),
		rightsOf("apps.kruise.io", "imagepulljobs/status", "patch"),
		rightsOf("apps.kruise.io", "imagepulljobs/finalizers", "update"),
	)
	// config/sidecarsets adds rights for SidecarSets.
	sets = join(sets,
		rightsOf("apps.kruise.io", "sidecarsets", "get", "list", "watch", "patch"),
		rightsOf("apps.kruise.io", "sidecarsets/status", "patch"),
		rightsOf("apps.kruise.io", "sidecarsets/finalizers", "update"),
		rightsOf("", "namespaces", "get", "list", "watch"),
		rightsOf("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "get", "list", "watch"),
	)
	for i := range entries.Configurations {
		sets = join(sets, rightsOf("admissionregistration.k8s.io", "mutatingwebhookconfigurations/"+entries.ConfigurationName(i), "patch"))
	}
	return join(basic(), sets,
		rightsOf("", "pods", "get", "list", "watch"),
		rightsOf("", "persistentvolumeclaims", "get", "list", "watch"),
		rightsOf("apps", "controllerrevisions", "get", "list", "watch"),
		rightsOf("rbac.authorization.k8s.io", "rolebindings", "get", "list", "watch"),
		rightsOf("apps.kruise.io", "podprobemarkers", "get", "list", "watch"),
		rightsOf("", "nodes", "get", "list", "watch"),
		rightsOf("", "events", "create", "patch"),
		rightsOf("coordination.k8s.io", "leases/kruise-manager", "get"),
		rightsOf("admissionregistration.k8s.io", "mutatingwebhookconfigurations/kruise-mutating-webhook-configuration", "get"),
	)
}

// grantedRights are those of seamark-workloads in a namespace with a RoleBinding.
func grantedRights() rights {
	return join(
		rightsOf("", "pods", "create", "patch", "delete"),
		rightsOf("", "pods/status", "patch"),
		rightsOf("", "pods/resize", "patch"),
		rightsOf("", "persistentvolumeclaims", "create", "patch"),
		rightsOf("apps", "controllerrevisions", "create", "patch", "delete"),
	)
}

// injectorRights are those of the injectors in their own namespace.
func injectorRights() rights {
	return join(basic(),
		rightsOf("apps.kruise.io", "sidecarsets", "get", "list", "watch"),
		rightsOf("apps", "controllerrevisions", "get", "list", "watch"),
		rightsOf("", "secrets/seamark-injector", "get", "update"),
		rightsOf("", "configmaps/seamark-injector-ca", "get", "update"),
	)
}
