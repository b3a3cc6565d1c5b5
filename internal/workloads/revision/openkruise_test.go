// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestRevisionIsThatOfOpenKruise compares contents and names with those that OpenKruise 1.9 writes. The
// files in testdata come from the encoder of k8s.io/apimachinery and the types of k8s.io/api in version
// 0.32.6, which OpenKruise 1.9.0 uses, and its rules: the set is encoded for its API version, decoded
// into maps, and spec.template is encoded again, with "$patch": "replace". The name has the FNV-1 hash
// of these bytes and of the count of collisions.
func TestRevisionIsThatOfOpenKruise(t *testing.T) {
	for file, name := range map[string]string{
		"short": "web-776548c8cb", "stored": "web-55c9655f6f", "wide": "web-7849cbdf69",
	} {
		t.Run(file, func(t *testing.T) {
			wanted, read := &corev1.PodTemplateSpec{}, func(ending string) []byte {
				content, err := os.ReadFile(filepath.Join("testdata", file+ending))
				expect.NoError(t, err)
				return content
			}
			expect.NoError(t, yaml.UnmarshalStrict(read(".yaml"), wanted))
			created := plan(t, owner(wanted), nil, 10, nil).Create
			if diff := cmp.Diff(string(read(".json")), string(created.Data.Raw)); diff != "" || created.Name != name {
				t.Errorf("revision %s, want %s; Data (-want +got):\n%s", created.Name, name, diff)
			}
			again, err := revision.Template(created)
			if diff := cmp.Diff(wanted, again); err != nil || diff != "" {
				t.Errorf("template of the revision: error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
