// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seamark-dev/seamark/test/expect"
)

// ControllerManagerArgs returns the arguments of a kube-controller-manager that runs the named controllers only, without leader
// election and without a client-side rate limit.
func ControllerManagerArgs(tb testing.TB, controllers string) []string {
	tb.Helper()
	_, port, err := net.SplitHostPort(FreeAddress(tb))
	expect.NoError(tb, err)
	return []string{
		"--controllers=" + controllers, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=" + port,
		"--cert-dir=" + tb.TempDir(), "--kube-api-qps=100000", "--kube-api-burst=100000",
	}
}

// RunControllerManager runs the named controllers of Kubernetes until the test ends, or until stop is called.
func (e *Env) RunControllerManager(tb testing.TB, controllers string) (stop func()) {
	tb.Helper()
	bin, err := Binaries()
	expect.NoError(tb, err)
	args := append(ControllerManagerArgs(tb, controllers), "--kubeconfig="+Kubeconfig(tb, e.Config))
	return Run(tb, func(ctx context.Context) error {
		command := exec.CommandContext(ctx, filepath.Join(bin, "kube-controller-manager"), args...)
		command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
		output, err := command.CombinedOutput()
		if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			return fmt.Errorf("run kube-controller-manager: %w\n%.4000s", err, output)
		}
		return nil
	})
}
