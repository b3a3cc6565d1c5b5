// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package env_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// crashVariable is the name of an environment variable that makes the test binary start an
// API server, print its child processes and exit without stopping them.
const crashVariable = "SEAMARK_TEST_CRASH"

func TestMain(m *testing.M) {
	if os.Getenv(crashVariable) != "" {
		crash()
	}
	os.Exit(m.Run())
}

// crash is the main function of the child process in TestCrashedTestLeavesNoProcesses.
func crash() {
	if _, err := env.New(env.NoCRDs()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(children(os.Getpid()))
	panic("simulated test timeout")
}

// children returns the IDs of the child processes of pid, separated by spaces.
func children(pid int) string {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return ""
	}
	var all []string
	for _, task := range tasks {
		content, err := os.ReadFile(task)
		if err != nil {
			continue
		}
		all = append(all, strings.Fields(string(content))...)
	}
	return strings.Join(all, " ")
}

func TestCrashedTestLeavesNoProcesses(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Fatal("setpriv of util-linux is required to end processes with a crashed test:", err)
	}
	var stdout, stderr bytes.Buffer
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), crashVariable+"=1", "TMPDIR="+t.TempDir())
	child.Stdout, child.Stderr = &stdout, &stderr
	err := child.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("child exited with %v, want the exit code of a panic; stderr: %s", err, stderr.String())
	}
	started := strings.Fields(stdout.String())
	if len(started) != 2 {
		t.Fatalf("child started the processes %v, want etcd and the API server; stderr: %s", started, stderr.String())
	}
	for _, word := range started {
		pid, err := strconv.Atoi(word)
		expect.NoErrorf(t, err, "parse process ID")
		err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return !alive(pid), nil
		})
		if err != nil {
			t.Errorf("process %d still runs after the test that started it: %v", pid, err)
		}
	}
}

// alive reports whether the process runs. A zombie does not.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

func TestErrorForMissingBinaries(t *testing.T) {
	t.Setenv(env.BinariesVariable, t.TempDir())
	_, err := env.New()
	if err == nil {
		t.Fatal("the environment started without etcd")
	}
	for _, want := range []string{"no etcd in", "make test-integration", env.BinariesVariable} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not contain %q", err, want)
		}
	}
}

func TestErrorForMissingCRDs(t *testing.T) {
	t.Parallel()
	if _, err := env.New(env.CRDDir(t.TempDir())); err == nil || !strings.Contains(err.Error(), "no CRD in") {
		t.Errorf(`error %v, want "no CRD in"`, err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	e := env.Start(t)
	namespace := e.Namespace(t)

	t.Run("request counts", func(t *testing.T) { testRequestCounts(t, e, namespace) })
	t.Run("API server restart", func(t *testing.T) {
		expect.NoError(t, e.StopAPIServer())
		if err := e.Client.List(t.Context(), &v1alpha1.PodProbeMarkerList{}); err == nil {
			t.Error("the API server responds after StopAPIServer")
		}
		expect.NoError(t, e.StartAPIServer())
		if err := e.Client.Get(t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{}); err != nil {
			t.Error("the API server lost its data or certificates:", err)
		}
	})
}

func testRequestCounts(t *testing.T, e *env.Env, namespace string) {
	before, err := e.Requests(t.Context())
	expect.NoError(t, err)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "counted"}}
	expect.NoError(t, e.Client.Create(t.Context(), config.DeepCopy()))
	if err := e.Client.Create(t.Context(), config.DeepCopy()); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("second create: %v, want already exists", err)
	}
	if err := e.Client.Create(t.Context(), config.DeepCopy(), client.DryRunAll); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("dry-run create: %v, want already exists", err)
	}
	want := env.Requests{
		{Verb: "POST", Resource: "configmaps", Code: "201"}: 1,
		{Verb: "POST", Resource: "configmaps", Code: "409"}: 1,
	}
	var diff string
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 10*time.Second, true,
		func(ctx context.Context) (bool, error) {
			now, err := e.Requests(ctx)
			if err != nil {
				return false, err
			}
			got := env.Requests{}
			for key, count := range now.Since(before) {
				if key.Resource == "configmaps" && key.IsWrite() {
					got[key] = count
				}
			}
			diff = cmp.Diff(want, got)
			return diff == "" && now.Since(before).Writes("configmaps", "") == 1 &&
				now.Since(before).Conflicts("configmaps") == 1, nil
		})
	if err != nil {
		t.Errorf("counted requests: %v (-want +got):\n%s", err, diff)
	}
}
