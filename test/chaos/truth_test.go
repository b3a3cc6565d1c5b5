// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// The answers of a container, which are also names of probes and of the files that decide them.
const (
	answerOK   = "ok"
	answerWeb  = "web"
	answerPort = "port"
)

// script serves what the probes ask: files over HTTP, and a port that is open while a file exists.
const script = `trap "exit 0" TERM
httpd -p 8080 -h /truth
while :; do
  if [ -f /truth/port ]; then
    [ -n "$open" ] || { httpd -f -p 7070 -h /tmp & open=$!; }
  elif [ -n "$open" ]; then
    kill $open; wait $open; open=
  fi
  sleep 0.2 & wait $!
done`

// truth is the answers of all containers. They are files on this machine, which a test can change whatever fails.
type truth struct {
	folder string

	mu sync.Mutex
	// changed is when an answer of the pod with the name changed.
	changed map[string]time.Time
}

func newTruth(folder string) *truth { return &truth{folder: folder, changed: map[string]time.Time{}} }

// flip changes an answer of a pod.
func (t *truth) flip(pod, answer string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed[pod] = time.Now()
	path := filepath.Join(t.folder, pod, answer)
	if t.exists(pod, answer) {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("flip: %w", err)
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("flip: %w", err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return fmt.Errorf("flip: %w", err)
	}
	return nil
}

func (t *truth) exists(pod, answer string) bool {
	_, err := os.Stat(filepath.Join(t.folder, pod, answer))
	return !errors.Is(err, fs.ErrNotExist)
}

// state returns what a probe of a running container must find.
func (t *truth) state(pod *corev1.Pod, _ *v1alpha1.PodProbeMarker, probe string) v1alpha1.ProbeState {
	if t.exists(pod.Name, probe) {
		return v1alpha1.ProbeSucceeded
	}
	return v1alpha1.ProbeFailed
}

// since returns when the answers of the pod last changed, or its container started.
func (t *truth) since(pod *corev1.Pod) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	since := t.changed[pod.Name]
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Running == nil {
			continue
		}
		// The time has whole seconds: it is up to a second earlier than the start.
		if started := status.State.Running.StartedAt.Add(time.Second); started.After(since) {
			since = started
		}
	}
	return since
}
