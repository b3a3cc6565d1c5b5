// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestEncoderGivesTheRevisionOfEachTemplate(t *testing.T) {
	encoder := &revision.Encoder{}
	limits := template("a:1")
	limits.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	for i, each := range []*corev1.PodTemplateSpec{template("a:1"), template("a:1"), template("b:1"), limits, template("a:1")} {
		want := plan(t, owner(each), nil, 10, nil).Update
		o := owner(each)
		o.Encoder = encoder
		expect.Equal(t, fmt.Sprintf("revision of template %d (-without encoder +with)", i), want, plan(t, o, nil, 10, nil).Update)
	}
}
