// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podview

import "testing"

func TestMapsWithOtherBoundariesDiffer(t *testing.T) {
	a := appendMap(nil, map[string]string{"a": "bc"})
	if b := appendMap(nil, map[string]string{"ab": "c"}); string(a) == string(b) {
		t.Errorf("both are %q", a)
	}
}
