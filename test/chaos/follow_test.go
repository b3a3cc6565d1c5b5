// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// followRetry is the time between two attempts to follow etcd, which the run kills.
const followRetry = 200 * time.Millisecond

// change is a change of an object. If it is gone, the object is its last state.
type change struct {
	object runtime.Object
	gone   bool
}

// stored is a value of etcd.
type stored struct {
	Key, Value []byte
	// Revision is that of the change.
	Revision int64 `json:"mod_revision,string"`
}

// events are a message of a watch of etcd.
type events struct {
	Result struct {
		Canceled     bool   `json:"canceled"`
		CancelReason string `json:"cancel_reason"`
		Events       []struct {
			Type string `json:"type"`
			KV   stored `json:"kv"`
			Last stored `json:"prev_kv"`
		} `json:"events"`
	} `json:"result"`
}

// revision returns the current revision of etcd.
func (w *world) revision(ctx context.Context) (int64, error) {
	status, err := w.etcd(ctx, "maintenance/status", map[string]any{})
	if err != nil {
		return 0, err
	}
	revision, err := strconv.ParseInt(status.Header.Revision, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("revision of etcd: %w", err)
	}
	return revision, nil
}

// errCanceled is for a watch that etcd does not continue.
var errCanceled = errors.New("the watch has lost changes")

// follow calls see with every change of pods, claims and markers of the namespace since a revision, in the order in
// which etcd has stored them, until ctx ends. A watch of the API server does not have that order: after a restart of
// the API server, it begins with a list.
func (w *world) follow(ctx context.Context, revision int64, see func(change)) error {
	for ctx.Err() == nil {
		err := w.followOnce(ctx, &revision, see)
		if errors.Is(err, errCanceled) {
			return err
		}
		linger(ctx, followRetry)
	}
	return nil
}

// followOnce follows etcd until it does not answer, and increases the revision.
func (w *world) followOnce(ctx context.Context, revision *int64, see func(change)) error {
	// One stream of all keys keeps the revision newer than what emptyEtcd forgets.
	all := []byte{0}
	messages, err := w.stream(ctx, "watch", map[string]any{"create_request": map[string]any{
		"key": all, "range_end": all, "start_revision": *revision, "prev_kv": true,
	}})
	if err != nil {
		return err
	}
	defer func() { _ = messages.Close() }()
	decoder := json.NewDecoder(messages)
	codec := serializer.NewCodecFactory(w.Client.Scheme()).UniversalDeserializer()
	for {
		message := &events{}
		if err := decoder.Decode(message); err != nil {
			return fmt.Errorf("watch of etcd: %w", err)
		}
		if message.Result.Canceled {
			return fmt.Errorf("%w: revision %d: %s", errCanceled, *revision, message.Result.CancelReason)
		}
		for _, event := range message.Result.Events {
			gone := event.Type == "DELETE"
			if gone {
				event.KV.Value = event.Last.Value
			}
			if w.follows(string(event.KV.Key)) {
				object, _, err := codec.Decode(event.KV.Value, nil, nil)
				if err != nil {
					return fmt.Errorf("%w: decode %s: %w", errCanceled, event.KV.Key, err)
				}
				see(change{object: object, gone: gone})
			}
			*revision = event.KV.Revision + 1
		}
	}
}

// follows reports whether a key of etcd is that of an object that the run follows.
func (w *world) follows(key string) bool {
	for _, resource := range []string{"pods", "persistentvolumeclaims", "apps.kruise.io/podprobemarkers"} {
		if strings.HasPrefix(key, "/registry/"+resource+"/"+w.Namespace+"/") {
			return true
		}
	}
	return false
}

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
