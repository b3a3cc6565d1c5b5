// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package accept_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
)

func set(name string, containers ...string) *v1alpha1.SidecarSet {
	s := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1alpha1.SidecarSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}},
	}}
	for _, container := range containers {
		s.Spec.Containers = append(s.Spec.Containers, v1alpha1.SidecarContainer{Container: corev1.Container{Name: container}})
	}
	return s
}

func patches(s *v1alpha1.SidecarSet, policy v1alpha1.SidecarSetPatchPolicyType, key, value string) *v1alpha1.SidecarSet {
	s.Spec.PatchPodMetadata = append(s.Spec.PatchPodMetadata, v1alpha1.SidecarSetPatchPodMetadata{PatchPolicy: policy, Annotations: map[string]string{key: value}})
	return s
}

const (
	retain    = v1alpha1.SidecarSetRetainPatchPolicy
	overwrite = v1alpha1.SidecarSetOverwritePatchPolicy
	merge     = v1alpha1.SidecarSetMergePatchJSONPatchPolicy
)

func TestConflicts(t *testing.T) {
	mode := int32(420)
	volume := func(s *v1alpha1.SidecarSet, source corev1.VolumeSource) *v1alpha1.SidecarSet {
		s.Spec.Volumes = append(s.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
		return s
	}
	config := func(mode *int32) corev1.VolumeSource {
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, DefaultMode: mode}}
	}
	inits := set("b")
	inits.Spec.InitContainers = []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "log"}}}
	elsewhere := set("a", "log")
	elsewhere.Spec.Selector.MatchLabels["app"] = "shop"
	prioritized := set("b", "log")
	prioritized.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A"}, {Name: "KRUISE_CONTAINER_PRIORITY", Value: "1"}}
	for name, test := range map[string]struct {
		set, accepted *v1alpha1.SidecarSet
		reason        accept.Reason
		want          string
	}{
		"other names":            {set: set("b", "log"), accepted: set("a", "other")},
		"the same set":           {set: set("a", "log"), accepted: set("a", "log")},
		"other pods":             {set: set("b", "log"), accepted: elsewhere},
		"container":              {set: set("b", "x", "log"), accepted: set("a", "log"), reason: accept.NameConflict, want: "spec.containers[1].name: log is the name of a container of SidecarSet a, which can select the same pods"},
		"init container":         {set: inits, accepted: set("a", "log"), reason: accept.NameConflict, want: "spec.initContainers[0].name: log is the name of a container of SidecarSet a"},
		"volume":                 {set: volume(set("b"), config(nil)), accepted: volume(set("a"), corev1.VolumeSource{}), reason: accept.NameConflict, want: "spec.volumes[0]: v is the name of another volume of SidecarSet a"},
		"equal volume":           {set: volume(set("b"), config(nil)), accepted: volume(set("a"), config(&mode))},
		"annotation, retained":   {set: patches(set("b"), "", "k", "1"), accepted: patches(set("a"), retain, "k", "2")},
		"annotation, merged":     {set: patches(set("b"), merge, "k", "{}"), accepted: patches(set("a"), merge, "k", "{}")},
		"annotation, policies":   {set: patches(set("b"), merge, "k", "{}"), accepted: patches(set("a"), "", "k", "{}"), reason: accept.NameConflict, want: "spec.patchPodMetadata[0].annotations[k]: SidecarSet a sets it with the policy Retain"},
		"annotation, overwrites": {set: patches(set("b"), overwrite, "k", "1"), accepted: patches(set("a"), overwrite, "k", "2"), reason: accept.NameConflict, want: "SidecarSet a sets it with the policy Overwrite"},
		"annotation twice":       {set: patches(patches(set("b"), "", "k", "1"), "", "k", "2"), reason: accept.NameConflict, want: "spec.patchPodMetadata[1].annotations[k]: the set has the key twice"},
		"no JSON":                {set: patches(set("b"), merge, "k", "[1]"), reason: accept.InvalidJSON, want: "must be a JSON object"},
		"JSON null":              {set: patches(set("b"), merge, "k", "null"), reason: accept.InvalidJSON, want: "must be a JSON object"},
		"own annotation":         {set: patches(set("b"), "", "kruise.io/sidecarset-hash", "1"), reason: accept.MetadataNotAllowed, want: "Kubernetes and Seamark set it themselves"},
		"annotation of kubelet":  {set: patches(set("b"), "", "kubernetes.io/config.mirror", "1"), reason: accept.MetadataNotAllowed, want: "Kubernetes and Seamark set it themselves"},
		"launch annotation":      {set: patches(set("b"), "", "apps.kruise.io/container-launch-priority", "1"), reason: accept.MetadataNotAllowed, want: "it has no effect: use an init container with restartPolicy Always"},
		"launch variable":        {set: prioritized, reason: accept.InvalidContainer, want: "spec.containers[0].env[1]: KRUISE_CONTAINER_PRIORITY has no effect"},
	} {
		t.Run(name, func(t *testing.T) {
			var accepted []*v1alpha1.SidecarSet
			if test.accepted != nil {
				accepted = append(accepted, test.accepted)
			}
			got := accept.Check(test.set, accepted, accept.WhiteList{DefaultAllowed: true})
			if test.want == "" {
				if len(got) > 0 {
					t.Errorf("problems %v, want none", got)
				}
				return
			}
			if len(got) != 1 || got[0].Reason != test.reason || !strings.Contains(got[0].String(), test.want) {
				t.Errorf("problems %v, want %s: %s", got, test.reason, test.want)
			}
		})
	}
}

func TestWhiteList(t *testing.T) {
	const list = `{"rules":[
		{"selector":{"matchLabels":{"team":"infra"}},"allowedAnnotationKeyExprs":["example.com/.*","log"]},
		{"allowedAnnotationKeyExprs":["common"]}]}`
	const selected = `{"rules":[{"selector":{"matchLabels":{"team":"infra"}},"allowedAnnotationKeyExprs":["a"]}]}`
	for name, test := range map[string]struct {
		list, team, key string
		defaults        bool
		want            string
	}{
		"no list":                   {key: "k", want: "no expression"},
		"no list, allowed":          {key: "k", defaults: true},
		"expression":                {list: list, team: "infra", key: "example.com/a"},
		"whole key":                 {list: list, team: "infra", key: "log"},
		"a part of the key":         {list: list, team: "infra", key: "catalog", want: "log matches a part of the key only, write .*log.*"},
		"rule of another team":      {list: list, team: "web", key: "log", want: "no expression"},
		"rule for all":              {list: list, team: "web", key: "common"},
		"rule, default allowed":     {list: list, team: "web", key: "log", defaults: true, want: "no expression"},
		"no rule, default allowed":  {list: selected, team: "web", key: "log", defaults: true},
		"rule without expressions":  {list: `{"rules":[{"selector":{"matchLabels":{"team":"web"}}}]}`, team: "web", key: "a", want: "no expression"},
		"no expressions, allowed":   {list: `{"rules":[{"selector":{"matchLabels":{"team":"web"}}}]}`, team: "web", key: "a", defaults: true},
		"no rule":                   {list: selected, team: "web", key: "a", want: "no expression"},
		"alternatives match wholly": {list: `{"rules":[{"allowedAnnotationKeyExprs":["a|b"]}]}`, key: "ax", want: "no expression"},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := accept.ParseWhiteList(test.list, test.defaults)
			if err != nil {
				t.Fatal(err)
			}
			s := patches(set("a"), "", test.key, "1")
			s.Labels = map[string]string{"team": test.team}
			got := accept.Check(s, nil, parsed)
			if (len(got) > 0) != (test.want != "") || test.want != "" && (got[0].Reason != accept.MetadataNotAllowed || !strings.Contains(got[0].Message, test.want)) {
				t.Errorf("problems %v, want %q", got, test.want)
			}
		})
	}
	for text, want := range map[string]string{
		"{": "parse SidecarSet_PatchPodMetadata_WhiteList",
		`{"rules":[{"allowedAnnotationKeyExprs":["a","("]}]}`:                               "rules[0].allowedAnnotationKeyExprs[1]",
		`{"rules":[{"selector":{"matchExpressions":[{"key":"a","operator":"Is"}]}}]}`:       "rules[0].selector",
		`{"rules":[` + strings.Repeat(`{},`, 256) + `{}]}`:                                  "257 rules, at most 256",
		`{"rules":[{"allowedAnnotationKeyExprs":["a"` + strings.Repeat(`,"a"`, 64) + `]}]}`: "65 expressions, at most 64",
	} {
		if _, err := accept.ParseWhiteList(text, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("list %.60s: error %v, want %s", text, err, want)
		}
	}
}
