// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/seamark-dev/seamark/internal/cli/check"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestImagePullJobs(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, f *check.Facts)
		want   string
	}{
		"ImagePullJobs without permissions, CRD and policy": {
			func(t *testing.T, f *check.Facts) {
				runWorkloads(t, f, "controllers: {imagePullJob: {enabled: true}}")
				allow(t, f, func(p check.Permission) bool { return p.Attributes.Resource != "imagepulljobs" })
			},
			"failed crd/imagepulljobs.apps.kruise.io: the CRD does not exist\n" +
				"  kubectl apply --server-side --force-conflicts -f config/crd/imagepulls/apps.kruise.io_imagepulljobs.yaml\n" +
				"failed permissions/seamark-workloads: the account lacks 8 of 43 permissions: " +
				"get imagepulljobs.apps.kruise.io, list imagepulljobs.apps.kruise.io, watch imagepulljobs.apps.kruise.io and 5 more\n" +
				"  install the roles of this version: helm upgrade, or kubectl apply --server-side -k config/imagepulls\n" +
				"warning policy/seamark-imagepulljob-author: the policy does not exist: " +
				"who can write ImagePullJobs can use the pull secrets of a namespace without the right to create pods\n" +
				"  set workloads.imagePullJobAuthorEnforcement=Deny in the chart, or kubectl apply --server-side -k config/imagepulls\n",
		},
		"ImagePullJobs": {
			func(t *testing.T, f *check.Facts) {
				runWorkloads(t, f, "controllers: {imagePullJob: {enabled: true}}")
				f.CRDs.Value = append(f.CRDs.Value, definition(t, "imagepulljobs.apps.kruise.io"))
				p, b := policy("seamark-imagepulljob-author", admissionregistrationv1.Warn)
				f.Policies.Value, f.Bindings.Value = append(f.Policies.Value, p), append(f.Bindings.Value, b)
				allow(t, f, func(check.Permission) bool { return true })
			},
			"warning policy/seamark-imagepulljob-author: violations are not rejected (Warn): " +
				"who can write ImagePullJobs can use the pull secrets of a namespace without the right to create pods\n" +
				"  set workloads.imagePullJobAuthorEnforcement=Deny in the chart, or kubectl apply --server-side -k config/imagepulls\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			test.change(t, f)
			expect.Equal(t, "results that are not ok", test.want, lines(check.Run(f), false))
		})
	}
}
