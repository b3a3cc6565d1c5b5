// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

const eventResource = "events"

// eventClient writes events to the API server. The typed client of client-go would register the
// types of all API groups in the agent.
type eventClient struct{ rest rest.Interface }

// newEventClient returns a client without a client-side rate limit.
func newEventClient(config *rest.Config) (*eventClient, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	config = rest.CopyConfig(config)
	config.QPS, config.Timeout = -1, eventTimeout
	config.GroupVersion = new(corev1.SchemeGroupVersion)
	config.APIPath = "/api"
	config.ContentType = runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create event client: %w", err)
	}
	return &eventClient{rest: client}, nil
}

// Create implements eventSink.
func (c *eventClient) Create(ctx context.Context, event *corev1.Event) error {
	body, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", event.Name, err)
	}
	err = c.rest.Post().Namespace(event.Namespace).Resource(eventResource).
		SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("create event %s: %w", event.Name, err)
	}
	return nil
}

// Patch implements eventSink.
func (c *eventClient) Patch(ctx context.Context, event *corev1.Event, patch []byte) error {
	err := c.rest.Patch(types.MergePatchType).Namespace(event.Namespace).Resource(eventResource).Name(event.Name).
		Body(patch).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("patch event %s: %w", event.Name, err)
	}
	return nil
}

// repeated returns the JSON merge patch of an event that occurs again.
func repeated(event *corev1.Event) ([]byte, error) {
	patch, err := json.Marshal(map[string]any{
		"count": event.Count, "lastTimestamp": event.LastTimestamp, "message": event.Message,
	})
	if err != nil {
		return nil, fmt.Errorf("encode patch of event %s: %w", event.Name, err)
	}
	return patch, nil
}

// nameOf returns the name of an event of a pod: its name, truncated if needed, and a time that
// makes it unique.
func nameOf(pod string, at time.Time) string {
	suffix := "." + strconv.FormatInt(at.UnixNano(), 16)
	cut := pod[:min(len(pod), validation.DNS1123SubdomainMaxLength-len(suffix))]
	return strings.TrimRight(cut, "-.") + suffix
}
