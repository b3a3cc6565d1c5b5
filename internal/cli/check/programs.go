// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
)

const (
	managerName   = "seamark-manager"
	workloadsName = "seamark-workloads"
	agentName     = "seamark-agent"
	// componentLabel has the name of the program in the labels of a pod.
	componentLabel = "app.kubernetes.io/component"
)

// deployment returns the Deployment with the name, or nil.
func (f *Facts) deployment(name string) *appsv1.Deployment {
	i := slices.IndexFunc(f.Deployments.Value, func(d appsv1.Deployment) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Deployments.Value[i]
}

// program checks the Deployment of a leader-elected program and its lease.
func (f *Facts) program(name string, required bool) []Result {
	component := strings.TrimPrefix(name, "seamark-")
	if f.Deployments.Err != nil {
		if !required {
			return nil
		}
		return []Result{unreadable(component, f.Deployments.Err)}
	}
	found := f.deployment(name)
	switch {
	case found == nil && !required:
		return nil
	case found == nil:
		return []Result{{
			Check: component, Verdict: Failed,
			Evidence: fmt.Sprintf("namespace %s has no Deployment %s", f.Namespace, name),
			Fix:      "install Seamark (docs/install.md), or name its namespace with --seamark-namespace",
		}}
	}
	return []Result{f.replicas(component, found), f.leader(component, name)}
}

func (f *Facts) replicas(component string, found *appsv1.Deployment) Result {
	wanted := int32(1)
	if found.Spec.Replicas != nil {
		wanted = *found.Spec.Replicas
	}
	r := Result{
		Check: component, Evidence: fmt.Sprintf("%d of %s ready", found.Status.ReadyReplicas, count(int(wanted), "pod")),
		Fix: fmt.Sprintf("kubectl -n %s describe pods -l %s=%s", f.Namespace, componentLabel, component),
	}
	switch {
	case wanted == 0:
		r.Verdict, r.Evidence = Failed, "the Deployment is scaled to 0"
		r.Fix = fmt.Sprintf("kubectl -n %s scale deployment %s --replicas 2", f.Namespace, found.Name)
	case found.Status.ReadyReplicas == 0:
		r.Verdict = Failed
	case found.Status.ReadyReplicas < wanted:
		r.Verdict = Warning
	case found.Status.ObservedGeneration < found.Generation || found.Status.UpdatedReplicas < wanted:
		r.Verdict, r.Evidence = Warning, r.Evidence+", an update is in progress"
		r.Fix = fmt.Sprintf("kubectl -n %s rollout status deployment %s", f.Namespace, found.Name)
	default:
		return ok(component, "%s", r.Evidence)
	}
	return r
}

// leader checks the lease of a leader-elected program.
func (f *Facts) leader(component, name string) Result {
	check := component + "-leader"
	if f.Leases.Err != nil {
		return unreadable(check, f.Leases.Err)
	}
	r := Result{
		Check: check, Verdict: Failed,
		Fix: fmt.Sprintf("kubectl -n %s logs -l %s=%s --tail=50", f.Namespace, componentLabel, component),
	}
	i := slices.IndexFunc(f.Leases.Value, func(l coordinationv1.Lease) bool { return l.Name == name })
	if i < 0 {
		r.Evidence = "the lease " + name + " does not exist: no pod has become the leader"
		return r
	}
	holder, renewed, leads := diagnosis.Leader(&f.Leases.Value[i], f.Now)
	switch {
	case holder == "":
		r.Evidence = "the lease " + name + " has no holder"
	case !leads:
		r.Evidence = fmt.Sprintf("%s last renewed the lease %s %s ago", holder, name, f.Now.Sub(renewed).Round(time.Second))
	default:
		return ok(check, "%s leads", holder)
	}
	return r
}

// versions checks that all programs have the same version.
func (f *Facts) versions() []Result {
	const name = "versions"
	if f.Pods.Err != nil {
		return []Result{unreadable(name, f.Pods.Err)}
	}
	byVersion := map[string][]string{}
	for i := range f.Pods.Value {
		pod := &f.Pods.Value[i]
		component := pod.Labels[componentLabel]
		if !slices.Contains([]string{"manager", "agent", "workloads"}, component) || pod.DeletionTimestamp != nil {
			continue
		}
		v := imageVersion(pod, component)
		if !slices.Contains(byVersion[v], component) {
			byVersion[v] = append(byVersion[v], component)
		}
	}
	var found []string
	for v, components := range byVersion {
		slices.Sort(components)
		found = append(found, fmt.Sprintf("%s (%s)", v, strings.Join(components, ", ")))
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		return []Result{{
			Check: name, Verdict: Failed, Evidence: fmt.Sprintf("namespace %s has no pods of Seamark", f.Namespace),
			Fix: fmt.Sprintf("kubectl -n %s get deployments,daemonsets,events", f.Namespace),
		}}
	case 1:
		return []Result{ok(name, "all pods run %s", found[0])}
	}
	// An image that is pinned by digest has no version: each program has its own digest.
	if !slices.ContainsFunc(found, func(v string) bool { return !strings.HasPrefix(v, "sha256:") }) && onePerProgram(byVersion) {
		return []Result{ok(name, "each program runs one image: %s", strings.Join(found, ", "))}
	}
	return []Result{{
		Check: name, Verdict: Warning, Evidence: "pods run different versions: " + strings.Join(found, ", "),
		Fix: fmt.Sprintf("kubectl -n %s rollout status daemonset %s", f.Namespace, agentName),
	}}
}

func onePerProgram(byVersion map[string][]string) bool {
	seen := map[string]bool{}
	for _, components := range byVersion {
		for _, component := range components {
			if seen[component] {
				return false
			}
			seen[component] = true
		}
	}
	return true
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
