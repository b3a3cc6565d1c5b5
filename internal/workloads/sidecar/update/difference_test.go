// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
)

// TestDefaultsAreNoDifference compares a revision that was recorded before the API server stored defaults with one of the same
// content that has them.
func TestDefaultsAreNoDifference(t *testing.T) {
	revision := func(edit func(c *v1alpha1.SidecarContainer)) *inject.Revision {
		c := v1alpha1.SidecarContainer{Container: corev1.Container{Name: "log"}}
		c.TransferEnv = []v1alpha1.TransferEnvVar{{EnvName: "A", SourceContainerNameFrom: &v1alpha1.SourceContainerNameSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['main']"},
		}}}
		edit(&c)
		return &inject.Revision{Containers: []v1alpha1.SidecarContainer{c}}
	}
	before := revision(func(*v1alpha1.SidecarContainer) {})
	after := revision(func(c *v1alpha1.SidecarContainer) {
		c.PodInjectPolicy, c.UpgradeStrategy.UpgradeType = v1alpha1.BeforeAppContainerType, v1alpha1.SidecarContainerColdUpgrade
		c.ShareVolumePolicy.Type = v1alpha1.ShareVolumePolicyDisabled
		c.TransferEnv[0].SourceContainerNameFrom.FieldRef.APIVersion = "v1"
	})
	if diff := cmp.Diff(own(before), own(after)); diff != "" {
		t.Errorf("difference (-before +after):\n%s", diff)
	}
	changed := revision(func(c *v1alpha1.SidecarContainer) { c.TransferEnv[0].EnvName = "B" })
	if cmp.Equal(own(before), own(changed)) {
		t.Error("another variable is no difference")
	}
}
