// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a runner that plays back changes.
type script struct {
	warnings []string
	options  local.Options
	// steps are the changes, each with the delay before it.
	steps []step
	// stopping is how long the pods take to terminate, unless they are killed.
	stopping time.Duration
	err      error
	killed   chan struct{}
}

type step struct {
	after  time.Duration
	change local.Change
}

func (s *script) Run(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	for _, step := range s.steps {
		select {
		case <-time.After(step.after):
			s.options.Observe(step.change)
		case <-ctx.Done():
		}
	}
	<-ctx.Done()
	select {
	case <-time.After(s.stopping):
		s.options.Observe(label("stopped", "yes"))
	case <-s.killed:
		s.options.Observe(label("killed", "yes"))
	}
	return nil
}

func (s *script) Kill() { s.killed <- struct{}{} }

func (s *script) Snapshot() []local.PodView {
	return []local.PodView{{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}}}
}

func (s *script) Warnings() []string { return s.warnings }

func label(key, value string) local.Change {
	return local.Change{Kind: local.KindLabel, Namespace: "default", Pod: "web", Key: key, Value: value}
}

// play runs `seamark local` with a script instead of processes, and interrupts it after the
// given durations.
func play(t *testing.T, s *script, o Options, interrupts ...time.Duration) (stdout, stderr string, err error) {
	t.Helper()
	var in, out, errOut bytes.Buffer
	in.WriteString(clitest.OnePod)
	o.IOStreams = genericiooptions.IOStreams{In: &in, Out: printing.Safe(&out), ErrOut: printing.Safe(&errOut)}
	if o.Filenames == nil {
		o.Filenames = []string{"-"}
	}
	o.Replicas = -1
	expect.NoError(t, errors.Join(o.Complete(nil), o.Validate(false)))
	s.killed = make(chan struct{}, 1)
	o.newRunner = func(options local.Options) (runner, error) {
		s.options = options
		return s, nil
	}
	for _, after := range interrupts {
		time.AfterFunc(after, func() { o.interrupts <- os.Interrupt })
	}
	err = o.Run(t.Context())
	return out.String(), errOut.String(), err
}

func TestUntil(t *testing.T) {
	steps := []step{
		{time.Second, label("role", "replica")},
		{2 * time.Second, label("role", "primary")},
		{2 * time.Second, label("role", "replica")},
	}
	for name, test := range map[string]struct {
		until      []string
		timeout    time.Duration
		interrupts []time.Duration
		stopping   time.Duration
		code       int
		// took is the duration of the run.
		took time.Duration
		says string
		// warnings are those of the run.
		warnings []string
	}{
		"met": {
			until: []string{"pod/web label=role:primary"}, timeout: time.Minute,
			took: 3 * time.Second, says: "all expressions met after 3s",
		},
		"met, pods terminate slowly": {
			until: []string{"pod/web label=role:primary"}, timeout: 4 * time.Second, stopping: 30 * time.Second,
			took: 33 * time.Second, says: "all expressions met after 3s",
		},
		"never met": {
			until: []string{"pod/web label=role:other", "pod/web label=role"}, timeout: 10 * time.Second,
			code: exit.Failed, took: 10 * time.Second,
			says: "timed out after 10s:\n  pod/web label=role:other: web has \"replica\"",
		},
		"never met, with a warning": {
			until: []string{"pod/web label=role:other"}, timeout: 10 * time.Second, warnings: []string{"a.yaml:7:15: no program"},
			code: exit.Failed, took: 10 * time.Second,
			says: "timed out after 10s:\n  pod/web label=role:other: web has \"replica\"\nWarning: a.yaml:7:15: no program",
		},
		"expressions met at different times": {
			until: []string{"pod/web label=role:primary", "pod/web restarts=1"}, timeout: 10 * time.Second,
			code: exit.Failed, took: 10 * time.Second,
			says: "timed out after 10s:\n  pod/web label=role:primary: web has \"replica\"\n  pod/web restarts=1: web has 0 restarts",
		},
		"interrupted": {
			until: []string{"pod/web label=role:primary"}, interrupts: []time.Duration{2 * time.Second},
			code: exit.Failed, took: 2 * time.Second, says: "interrupted after 2s:\n  pod/web label=role:primary: web has \"replica\"",
		},
		"no expressions, interrupted": {interrupts: []time.Duration{2 * time.Second}, took: 2 * time.Second},
		"no expressions, timed out":   {timeout: 5 * time.Second, took: 5 * time.Second},
		"change during termination does not count": {
			until: []string{"pod/web label=stopped:yes"}, timeout: 10 * time.Second, stopping: time.Second,
			code: exit.Failed, took: 11 * time.Second, says: "web has no such label",
		},
		"killed by the second interrupt": {
			interrupts: []time.Duration{2 * time.Second, 3 * time.Second}, stopping: time.Hour, took: 3 * time.Second,
		},
		"first interrupt after the end kills": {
			until: []string{"pod/web label=role:replica"}, interrupts: []time.Duration{2 * time.Second}, stopping: time.Hour,
			took: 2 * time.Second, says: "all expressions met after 1s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, stderr, err := play(t, &script{steps: steps, stopping: test.stopping, warnings: test.warnings},
					Options{Until: test.until, Timeout: test.timeout}, test.interrupts...)
				if code := exit.Code(err); code != test.code {
					t.Errorf("exit code %d, want %d: %v", code, test.code, err)
				}
				if err != nil {
					stderr += err.Error()
				}
				if !strings.Contains(stderr, test.says) || (test.says == "" && stderr != "") {
					t.Errorf("standard error and error are %q, want %q", stderr, test.says)
				}
				expect.Equal(t, "took", test.took, time.Since(start))
			})
		})
	}
}

func TestRunPrintsChanges(t *testing.T) {
	steps := []step{
		{time.Second, label("role", "primary")},
		{
			time.Second, local.Change{
				Kind: local.KindLog, Namespace: "default", Pod: "web", Container: "web", Log: &local.LogLine{Stream: "stdout", Text: "hello"},
			},
		},
	}
	for name, test := range map[string]struct {
		options Options
		want    []string
	}{
		"text": {Options{}, []string{"web  Label       role=primary", "web  Label       stopped=yes"}},
		"text with logs": {Options{Output: "text", Logs: true}, []string{
			"web  Label       role=primary", "web  Log         web stdout: hello", "web  Label       stopped=yes"}},
		"json": {Options{Output: "json"}, []string{
			`"namespace":"default","pod":"web","label":{"key":"role","value":"primary"}}`,
			`"namespace":"default","pod":"web","label":{"key":"stopped","value":"yes"}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.options.Timeout = 3 * time.Second
				stdout, _, err := play(t, &script{steps: steps}, test.options)
				expect.NoError(t, err)
				lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
				if len(lines) != len(test.want) {
					t.Fatalf("%d lines, want %d:\n%s", len(lines), len(test.want), stdout)
				}
				for i, want := range test.want {
					if !strings.HasSuffix(lines[i], want) {
						t.Errorf("line %d is %q, want it to end with %q", i, lines[i], want)
					}
				}
			})
		})
	}
}

func TestUnsupportedFieldsGiveOneWarning(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pod.yaml")
	expect.NoError(t, os.WriteFile(file, []byte(clitest.OnePod+"  hostPID: true\n  dnsPolicy: None\n"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		_, stderr, err := play(t, &script{}, Options{Filenames: []string{file}, Timeout: time.Second})
		expect.NoError(t, err)
		want := "Warning: a local run ignores:\n  " + file + ":11:3: Pod web: spec.dnsPolicy\n  " + file + ":10:3: Pod web: spec.hostPID\n"
		expect.Equal(t, "standard error", want, stderr)
	})
}

func TestManyWarningsAreCounted(t *testing.T) {
	many := slices.Repeat([]string{"marker idle matches no pod"}, 20_000)
	synctest.Test(t, func(t *testing.T) {
		_, stderr, err := play(t, &script{warnings: many}, Options{Timeout: time.Second})
		if lines := strings.Count(stderr, "\n"); err != nil || lines != maxListed+1 ||
			!strings.HasPrefix(stderr, "Warning: marker idle matches no pod\n") || !strings.HasSuffix(stderr, "\nWarning: 19900 more\n") {
			t.Errorf("%d lines, error %v: %.80s", lines, err, stderr)
		}
		_, _, err = play(t, &script{warnings: many}, Options{Strict: true})
		if err == nil || !strings.HasSuffix(err.Error(), "\n  19900 more") || strings.Count(err.Error(), "\n") != maxListed+1 {
			t.Errorf("error %.200v", err)
		}
	})
}

func TestRunnerErrorGivesExitCodeFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("no loopback addresses")
		_, _, err := play(t, &script{err: broken}, Options{})
		if !errors.Is(err, broken) || exit.Code(err) != exit.Failed {
			t.Errorf("error %v, code %d", err, exit.Code(err))
		}
	})
}

// brokenPipe is an output whose reader is closed.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestOutputErrorEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(nil, false)
		s.runner = &script{options: local.Options{Observe: s.observe}, steps: []step{{time.Second, label("a", "b")}}}
		o := Options{IOStreams: genericiooptions.IOStreams{Out: brokenPipe{}}, Output: "json"}
		end, err := s.run(t.Context(), time.Hour, nil, o.display(t.Context(), s))
		if !errors.Is(err, io.ErrClosedPipe) || end.after != time.Second {
			t.Errorf("ended after %s with %v", end.after, err)
		}
	})
}

func TestWindowsIsRejected(t *testing.T) {
	o := &Options{Filenames: []string{"-"}, Replicas: -1}
	expect.NoError(t, o.Complete(nil))
	o.system = "windows"
	expect.ErrorWith(t, "Validate()", "does not run on Windows", o.Validate(false))
	o.system = "darwin"
	expect.Success(t, o.Validate(false))
}
