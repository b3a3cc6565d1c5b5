// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decoding reads custom resources with and without a cache, so that an object that cannot be decoded is
// isolated, as package isolate describes.
package decoding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/seamark-dev/seamark/internal/program/isolate"
)

// Server is where informers read custom resources.
type Server struct {
	// Config and HTTP connect to the API server.
	Config *rest.Config
	HTTP   *http.Client
	Scheme *runtime.Scheme
	Mapper meta.RESTMapper
}

// Source returns what lists and watches the objects of the type of a custom resource, or nil if it is no custom
// resource or if only its metadata is read, of which API servers check the types. It has no selectors.
func (s Server) Source(object runtime.Object) (toolscache.ListerWatcher, error) {
	if isPartial(object) {
		return nil, nil //nolint:nilnil // The caller has a source.
	}
	kind, err := apiutil.GVKForObject(object, s.Scheme)
	if err != nil || !isolate.IsCustom(kind.Group) {
		return nil, nil //nolint:nilnil,nilerr // as above
	}
	mapping, err := s.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", kind.Kind, err)
	}
	reader, err := s.client(kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	empty, err := s.Scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err != nil {
		return nil, fmt.Errorf("create a list of %s: %w", kind.Kind, err)
	}
	request := func(options metav1.ListOptions) *rest.Request {
		return reader.Get().Resource(mapping.Resource.Resource).VersionedParams(&options, metav1.ParameterCodec)
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			found := empty.DeepCopyObject()
			return found, request(options).Do(ctx).Into(found)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch, options.AllowWatchBookmarks = true, true
			return request(options).Watch(ctx)
		},
	}, nil
}

func (s Server) client(version schema.GroupVersion) (rest.Interface, error) {
	config := rest.CopyConfig(s.Config)
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/apis", &version, isolate.Serializer(s.Scheme)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	reader, err := rest.RESTClientForConfigAndClient(config, s.HTTP)
	if err != nil {
		return nil, fmt.Errorf("create the client of %s: %w", version, err)
	}
	return reader, nil
}

// Reader isolates the custom resources that a reader without a cache reads. Objects that can be decoded cost nothing
// more: the others are read again.
type Reader struct {
	client.Reader
	Scheme *runtime.Scheme
}

// Get reads an object.
func (r Reader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, object, options...)
	kind, again := r.again(err, object)
	if !again {
		return err //nolint:wrapcheck // It is that of the reader.
	}
	whole := &unstructured.Unstructured{}
	whole.SetGroupVersionKind(kind)
	if err := r.Reader.Get(ctx, key, whole, options...); err != nil {
		return err //nolint:wrapcheck // as above
	}
	// The first attempt may have decoded a part.
	reflect.ValueOf(object).Elem().SetZero()
	return fill(whole, object)
}

// List reads the objects of a kind.
func (r Reader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := r.Reader.List(ctx, list, options...)
	kind, again := r.again(err, list)
	if !again {
		return err //nolint:wrapcheck // as above
	}
	whole := &unstructured.UnstructuredList{}
	whole.SetGroupVersionKind(kind)
	if err := r.Reader.List(ctx, whole, options...); err != nil {
		return err //nolint:wrapcheck // as above
	}
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return fmt.Errorf("decode the list: %w", err)
	}
	items := reflect.ValueOf(pointer).Elem()
	items.Set(reflect.MakeSlice(items.Type(), len(whole.Items), len(whole.Items)))
	for i := range whole.Items {
		item, ok := items.Index(i).Addr().Interface().(client.Object)
		if !ok {
			return errors.New("decode the list: its items are not objects")
		}
		if err := fill(&whole.Items[i], item); err != nil {
			return err
		}
	}
	list.SetResourceVersion(whole.GetResourceVersion())
	list.SetContinue(whole.GetContinue())
	list.SetRemainingItemCount(whole.GetRemainingItemCount())
	return nil
}

// again reports whether an error may be that of the decoder: the API server has answered with an object of a custom
// resource.
func (r Reader) again(err error, object runtime.Object) (schema.GroupVersionKind, bool) {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) || meta.IsNoMatchError(err) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || isPartial(object) {
		return schema.GroupVersionKind{}, false
	}
	kind, unknown := apiutil.GVKForObject(object, r.Scheme)
	return kind, unknown == nil && isolate.IsCustom(kind.Group)
}

func isPartial(object runtime.Object) bool {
	switch object.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList, runtime.Unstructured:
		return true
	default:
		return false
	}
}

// fill decodes an object into one of its type.
func fill(whole *unstructured.Unstructured, into client.Object) error {
	encoded, err := json.Marshal(whole.Object)
	if err != nil {
		return fmt.Errorf("encode %s: %w", whole.GetKind(), err)
	}
	if err := isolate.Object(encoded, into); err != nil {
		return fmt.Errorf("decode %s %s: %w", whole.GetKind(), client.ObjectKeyFromObject(whole), err)
	}
	return nil
}

// Client isolates the custom resources that a client without a cache reads and watches.
type Client struct {
	client.WithWatch
	reader Reader
}

// NewClient returns a Client.
func NewClient(inner client.WithWatch) Client {
	return Client{WithWatch: inner, reader: Reader{Reader: inner, Scheme: inner.Scheme()}}
}

// Get reads an object.
func (c Client) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.reader.Get(ctx, key, object, options...)
}

// List reads the objects of a kind.
func (c Client) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.reader.List(ctx, list, options...)
}

// Watch watches the objects of a kind.
func (c Client) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	kind, err := apiutil.GVKForObject(list, c.Scheme())
	if err != nil || !isolate.IsCustom(kind.Group) || isPartial(list) {
		return c.WithWatch.Watch(ctx, list, options...)
	}
	whole := &unstructured.UnstructuredList{}
	whole.SetGroupVersionKind(kind)
	events, err := c.WithWatch.Watch(ctx, whole, options...)
	if err != nil {
		return nil, err //nolint:wrapcheck // It is that of the client.
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	return drained{watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Error {
			return event, true
		}
		typed, err := c.Scheme().New(kind)
		if into, ok := typed.(client.Object); err == nil && ok && fill(object, into) == nil {
			event.Object = into
		}
		return event, true
	})}, nil
}

// drained is a watch whose events nobody reads after Stop. The goroutine of watch.Filter would wait for a reader.
type drained struct{ watch.Interface }

// Stop ends the watch.
func (d drained) Stop() {
	d.Interface.Stop()
	go func() {
		for range d.ResultChan() {
		}
	}()
}
