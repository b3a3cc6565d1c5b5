// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestProbeThatCannotRun has a probe whose program does not exist until the test creates it. The
// pod gets one Warning event, and no mark before the first result.
func TestProbeThatCannotRun(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "check")
	r := startMain(t, sleeps, "", marker("typo", "matchLabels: {app: p}",
		`{name: late, containerName: main, podConditionType: typo/late, probe: {exec: {command: ["`+program+`"]}, periodSeconds: 1}}`))
	r.await("p/main event Warning KruiseProbeError typo#late: start " + program + ": no such file or directory")
	if n := r.count("p condition typo/late="); n != 0 {
		t.Errorf("%d changes of the condition before the first result, want none", n)
	}
	write(t, program+".new", "#!/bin/sh\n")
	if err := errors.Join(os.Chmod(program+".new", 0o700), os.Rename(program+".new", program)); err != nil {
		t.Fatal(err)
	}
	r.await("p condition typo/late=True")
	if n := r.count("p/main event Warning KruiseProbeError"); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}
