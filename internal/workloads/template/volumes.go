// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// EqualVolumes reports whether both volumes are equal in a pod: with the defaults of the API server.
func EqualVolumes(a, b *corev1.Volume) bool {
	if equality.Semantic.DeepEqual(a, b) {
		return true
	}
	a, b = a.DeepCopy(), b.DeepCopy()
	volume(&a.VolumeSource)
	volume(&b.VolumeSource)
	return equality.Semantic.DeepEqual(a, b)
}

// volume sets the defaults of a volume.
func volume(v *corev1.VolumeSource) {
	if equality.Semantic.DeepEqual(*v, corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	switch {
	case v.HostPath != nil:
		point(&v.HostPath.Type, corev1.HostPathUnset)
	case v.Image != nil:
		fill(&v.Image.PullPolicy, pullPolicy(v.Image.Reference))
	case v.Secret != nil:
		point(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		point(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		point(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		downward(v.DownwardAPI.Items)
	case v.Projected != nil:
		projected(v.Projected)
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		claim := &v.Ephemeral.VolumeClaimTemplate.Spec
		point(&claim.VolumeMode, corev1.PersistentVolumeFilesystem)
		round(claim.Resources.Limits, claim.Resources.Requests)
	default:
		driver(v)
	}
}

func projected(v *corev1.ProjectedVolumeSource) {
	point(&v.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range v.Sources {
		if v.Sources[i].DownwardAPI != nil {
			downward(v.Sources[i].DownwardAPI.Items)
		}
		if token := v.Sources[i].ServiceAccountToken; token != nil {
			point(&token.ExpirationSeconds, 60*60)
		}
	}
}

func downward(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		fieldRef(items[i].FieldRef)
	}
}

// driver sets the defaults of a volume of a storage system that Kubernetes once had a driver for.
func driver(v *corev1.VolumeSource) {
	switch {
	case v.ISCSI != nil:
		fill(&v.ISCSI.ISCSIInterface, "default")
	case v.RBD != nil:
		fill(&v.RBD.RBDPool, "rbd")
		fill(&v.RBD.RadosUser, "admin")
		fill(&v.RBD.Keyring, "/etc/ceph/keyring")
	case v.AzureDisk != nil:
		point(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		point(&v.AzureDisk.FSType, "ext4")
		point(&v.AzureDisk.ReadOnly, false)
		point(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
	case v.ScaleIO != nil:
		fill(&v.ScaleIO.StorageMode, "ThinProvisioned")
		fill(&v.ScaleIO.FSType, "xfs")
	}
}
