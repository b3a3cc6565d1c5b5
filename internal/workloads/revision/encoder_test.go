// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

func TestEncoderGivesTheRevisionOfEachTemplate(t *testing.T) {
	encoder := &revision.Encoder{}
	limits := template("a:1")
	limits.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	for i, each := range []*corev1.PodTemplateSpec{template("a:1"), template("a:1"), template("b:1"), limits, template("a:1")} {
		want := plan(t, owner(each), nil, 10, nil).Update
		o := owner(each)
		o.Encoder = encoder
		if diff := cmp.Diff(want, plan(t, o, nil, 10, nil).Update); diff != "" {
			t.Errorf("revision of template %d (-without encoder +with):\n%s", i, diff)
		}
	}
}
