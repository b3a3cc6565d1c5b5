// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
)

// differences are what differs between revisions and the latest one, each computed once per step.
type differences struct {
	revisions map[string]*appsv1.ControllerRevision
	known     map[string]*inplace.Difference
	// why is why pods of a revision cannot be updated.
	why map[string]string
}

func newDifferences(all []*appsv1.ControllerRevision) *differences {
	d := &differences{revisions: map[string]*appsv1.ControllerRevision{}, known: map[string]*inplace.Difference{}, why: map[string]string{}}
	for _, rev := range all {
		d.revisions[rev.Name] = rev
	}
	return d
}

// revision returns the content of a revision.
func (d *differences) revision(name string) (*inject.Revision, error) {
	if rev := d.revisions[name]; rev != nil {
		return history.Parse(rev)
	}
	return nil, fmt.Errorf("ControllerRevision %s does not exist", name)
}

// reason returns why the pod cannot be updated in place, or nothing. If its revision does not exist any more,
// its hash without images shows whether only images differ.
func (d *differences) reason(m *member, latest *inject.Revision) string {
	key := m.revision
	if d.revisions[key] == nil {
		withoutImages := inject.WithoutImage(m.pod, latest.Set)
		if withoutImages == "" || withoutImages != latest.HashWithoutImage {
			return fmt.Sprintf("its revision %q does not exist", m.revision)
		}
		key = "" // Only images differ.
	}
	if _, found := d.known[key]; !found {
		d.known[key], d.why[key] = d.between(key, latest)
	}
	if why := d.why[key]; why != "" {
		return why
	}
	m.revision = key
	_, why := d.known[key].Decide(m.view)
	return why
}

// between compares a revision with the latest one.
func (d *differences) between(name string, latest *inject.Revision) (*inplace.Difference, string) {
	to := template(latest)
	if name == "" {
		from := to.DeepCopy()
		for i := range from.Spec.Containers {
			from.Spec.Containers[i].Image = ""
		}
		return inplace.Between(from, to), ""
	}
	old, err := d.revision(name)
	if err != nil {
		return nil, err.Error()
	}
	before, after := own(old), own(latest)
	for _, container := range slices.Sorted(maps.Keys(after)) {
		if was, found := before[container]; found && !equality.Semantic.DeepEqual(was, after[container]) {
			return nil, fmt.Sprintf("what container %s gets of the pod's containers changes", container)
		}
	}
	return inplace.Between(template(old), to), ""
}

// change returns how the pod is updated, which reason has found to be possible.
func (d *differences) change(m *member) *inplace.Change {
	change, _ := d.known[m.revision].Decide(m.view)
	return change
}

// own returns what the containers have that is not part of a container of a pod, by name.
func own(r *inject.Revision) map[string]v1alpha1.SidecarContainer {
	found := map[string]v1alpha1.SidecarContainer{}
	for _, c := range running(r) {
		rest := *c.DeepCopy()
		rest.Container = corev1.Container{}
		// The position of a container does not change, and there is one type of upgrade.
		rest.PodInjectPolicy, rest.UpgradeStrategy = "", v1alpha1.SidecarContainerUpgradeStrategy{}
		rest.ShareVolumePolicy.Type = cmp.Or(rest.ShareVolumePolicy.Type, v1alpha1.ShareVolumePolicyDisabled)
		if rest.ShareVolumeDevicePolicy == nil || rest.ShareVolumeDevicePolicy.Type == "" {
			rest.ShareVolumeDevicePolicy = &v1alpha1.ShareVolumePolicy{Type: v1alpha1.ShareVolumePolicyDisabled}
		}
		for i := range rest.TransferEnv {
			if from := rest.TransferEnv[i].SourceContainerNameFrom; from != nil && from.FieldRef != nil {
				from.FieldRef.APIVersion = cmp.Or(from.FieldRef.APIVersion, "v1")
			}
		}
		found[c.Name] = rest
	}
	return found
}

// running returns the containers that run as long as the pod, by name. Other init containers have ended.
func running(r *inject.Revision) []v1alpha1.SidecarContainer {
	containers := slices.Clone(r.Containers)
	for i := range r.InitContainers {
		if inject.IsNative(&r.InitContainers[i]) {
			containers = append(containers, r.InitContainers[i])
		}
	}
	slices.SortFunc(containers, func(a, b v1alpha1.SidecarContainer) int { return cmp.Compare(a.Name, b.Name) })
	return containers
}

// template returns a template of the containers, with the volumes that they mount.
func template(r *inject.Revision) *corev1.PodTemplateSpec {
	t, mounted := &corev1.PodTemplateSpec{}, sets.New[string]()
	for _, c := range running(r) {
		t.Spec.Containers = append(t.Spec.Containers, *c.Container.DeepCopy())
		for _, mount := range c.VolumeMounts {
			mounted.Insert(mount.Name)
		}
		for _, device := range c.VolumeDevices {
			mounted.Insert(device.Name)
		}
	}
	for i := range r.Volumes {
		if mounted.Has(r.Volumes[i].Name) {
			t.Spec.Volumes = append(t.Spec.Volumes, *r.Volumes[i].DeepCopy())
		}
	}
	return t
}
