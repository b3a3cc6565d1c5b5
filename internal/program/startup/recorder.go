// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
)

// AddRecorder returns an event recorder with the named program as the source. It records while the
// manager runs.
func AddRecorder(cfg *rest.Config, mgr ctrlmanager.Manager, name string) (record.EventRecorder, error) {
	// Events are many: protobuf costs the API server less than JSON, the default.
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType = runtime.ContentTypeProtobuf
	client, err := typedcorev1.NewForConfigAndClient(cfg, mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("create the client for events: %w", err)
	}
	broadcaster := record.NewBroadcaster()
	err = mgr.Add(&recording{broadcaster: broadcaster, sink: &typedcorev1.EventSinkImpl{Interface: client.Events("")}})
	if err != nil {
		return nil, fmt.Errorf("add the event recorder: %w", err)
	}
	return broadcaster.NewRecorder(mgr.GetScheme(), corev1.EventSource{Component: name}), nil
}

// recording sends events to the API server.
type recording struct {
	broadcaster record.EventBroadcaster
	sink        record.EventSink
}

// Start records until the context ends.
func (r *recording) Start(ctx context.Context) error {
	r.broadcaster.StartRecordingToSink(r.sink)
	<-ctx.Done()
	r.broadcaster.Shutdown()
	return nil
}

// NeedLeaderElection returns false: it runs in every manager, but only the leader has events.
func (r *recording) NeedLeaderElection() bool { return false }
