// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
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
