// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/text"
)

const (
	managerName   = "seamark-manager"
	workloadsName = "seamark-workloads"
	injectorName  = "seamark-injector"
	agentName     = "seamark-agent"
	// componentLabel has the name of the program in the labels of a pod.
	componentLabel = "app.kubernetes.io/component"
)

// hasWorkloads reports whether seamark-workloads is installed.
func (f *Facts) hasWorkloads() bool { return named(f.Deployments.Value, workloadsName) != nil }

// hasInjector reports whether the injectors of SidecarSets are installed.
func (f *Facts) hasInjector() bool { return named(f.Deployments.Value, injectorName) != nil }

// enabled returns the kinds whose controllers run, according to the configuration of seamark-workloads, or to its defaults
// if that is not known. SidecarSets count as enabled if their injectors are installed. assumed is whether the defaults were
// used although there may be a configuration.
func (f *Facts) enabled() (enabled []kinds.Kind, assumed bool) {
	if !f.hasWorkloads() {
		return nil, false
	}
	var c configv1alpha1.WorkloadsConfiguration
	assumed = f.Configuration.Err != nil
	if given := f.Configuration.Value; given != nil && yaml.Unmarshal([]byte(given.Data["workloads.yaml"]), &c) != nil {
		c, assumed = configv1alpha1.WorkloadsConfiguration{}, true
	}
	configv1alpha1.SetWorkloadsDefaults(&c)
	return slices.DeleteFunc(kinds.Table(), func(k kinds.Kind) bool {
		return !*k.Controller(&c.Controllers).Enabled && (k.Role != kinds.Injector || !f.hasInjector())
	}), assumed
}

// configuration says that it is not known which controllers of seamark-workloads run, if that is so.
func (f *Facts) configuration() []Result {
	if f.hasWorkloads() && f.Configuration.Err != nil {
		return unreadable("workloads-configuration", f.Configuration.Err)
	}
	return nil
}

// injector checks the Deployment of the injectors, which have no leader.
func (f *Facts) injector() []Result {
	if found := named(f.Deployments.Value, injectorName); found != nil {
		return f.replicas("injector", found)
	}
	return nil
}

// program checks the Deployment of a leader-elected program and its lease.
func (f *Facts) program(name string, required bool) []Result {
	component, found := strings.TrimPrefix(name, "seamark-"), named(f.Deployments.Value, name)
	switch {
	case found == nil && !required:
		return nil
	case f.Deployments.Err != nil:
		return unreadable(component, f.Deployments.Err)
	case found == nil:
		return failed(component, install, "namespace %s has no Deployment %s", f.Namespace, name)
	}
	return append(f.replicas(component, found), f.leader(component, name)...)
}

func (f *Facts) replicas(component string, found *appsv1.Deployment) []Result {
	wanted := ptr.Deref(found.Spec.Replicas, 1)
	ready := fmt.Sprintf("%d of %s ready", found.Status.ReadyReplicas, text.Count(int(wanted), "pod"))
	describe := f.kubectl("describe pods -l %s=%s", componentLabel, component)
	switch {
	case wanted == 0:
		return failed(component, f.kubectl("scale deployment %s --replicas 2", found.Name), "the Deployment is scaled to 0")
	case found.Status.ReadyReplicas == 0:
		return failed(component, describe, "%s", ready)
	case found.Status.ReadyReplicas < wanted:
		return warning(component, describe, "%s", ready)
	case found.Status.ObservedGeneration < found.Generation || found.Status.UpdatedReplicas < wanted:
		return warning(component, f.kubectl("rollout status deployment %s", found.Name), "%s, an update is in progress", ready)
	}
	return ok(component, "%s", ready)
}

// leader checks the lease of a leader-elected program.
func (f *Facts) leader(component, name string) []Result {
	check := component + "-leader"
	if f.Leases.Err != nil {
		return unreadable(check, f.Leases.Err)
	}
	lease := named(f.Leases.Value, name)
	holder, renewed, leads := diagnosis.Leader(lease, f.Now)
	switch {
	case lease == nil:
		return failed(check, f.logs(component), "the lease %s does not exist: no pod has become the leader", name)
	case holder == "":
		return failed(check, f.logs(component), "the lease %s has no holder", name)
	case !leads:
		return failed(check, f.logs(component), "%s last renewed the lease %s %s ago", holder, name, f.Now.Sub(renewed).Round(time.Second))
	}
	return ok(check, "%s leads", holder)
}

// versions checks that all programs have the same version.
func (f *Facts) versions() []Result {
	const name = "versions"
	if f.Pods.Err != nil {
		return unreadable(name, f.Pods.Err)
	}
	byVersion, versionsOf := map[string]sets.Set[string]{}, map[string]sets.Set[string]{}
	for i := range f.Pods.Value {
		pod := &f.Pods.Value[i]
		component := pod.Labels[componentLabel]
		if slices.Contains([]string{"manager", "agent", "workloads", "injector"}, component) && pod.DeletionTimestamp == nil {
			v := imageVersion(pod, component)
			byVersion[v], versionsOf[component] = byVersion[v].Union(sets.New(component)), versionsOf[component].Union(sets.New(v))
		}
	}
	var found []string
	// An image that is pinned by digest has no version: each program has its own digest.
	pinned := true
	for _, v := range slices.Sorted(maps.Keys(byVersion)) {
		found = append(found, fmt.Sprintf("%s (%s)", v, strings.Join(sets.List(byVersion[v]), ", ")))
		pinned = pinned && strings.HasPrefix(v, "sha256:")
	}
	for _, versions := range versionsOf {
		pinned = pinned && versions.Len() == 1
	}
	switch {
	case len(found) == 0:
		return failed(name, f.kubectl("get deployments,daemonsets,events"), "namespace %s has no pods of Seamark", f.Namespace)
	case len(found) == 1:
		return ok(name, "all pods run %s", found[0])
	case pinned:
		return ok(name, "each program runs one image: %s", strings.Join(found, ", "))
	}
	return warning(name, f.kubectl("rollout status daemonset %s", agentName), "pods run different versions: %s", strings.Join(found, ", "))
}

// imageVersion returns the tag or digest of the image of the program in the pod.
func imageVersion(pod *corev1.Pod, component string) string {
	i := max(0, slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == component }))
	if len(pod.Spec.Containers) == 0 {
		return "unknown"
	}
	image := pod.Spec.Containers[i].Image
	if _, digest, pinned := strings.Cut(image, "@"); pinned {
		return digest[:min(len(digest), len("sha256:")+12)]
	}
	if _, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":"); tagged {
		return tag
	}
	return "latest"
}
