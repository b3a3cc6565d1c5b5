// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// IsCustom reports whether a group has custom resources. Those of Kubernetes have no dot or the suffix k8s.io, and
// API servers decode their objects themselves.
func IsCustom(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// Serializer returns the serializer of a client for the custom resources of a scheme: it isolates objects in lists, in
// watches and alone. Objects that fit are decoded once.
func Serializer(scheme *runtime.Scheme) runtime.NegotiatedSerializer {
	return negotiated{NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(), scheme: scheme}
}

type negotiated struct {
	runtime.NegotiatedSerializer
	scheme *runtime.Scheme
}

// DecoderToVersion returns a decoder that isolates objects. They keep their kinds, as with the clients of
// controller-runtime.
func (n negotiated) DecoderToVersion(inner runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
	return decoder{Decoder: inner, scheme: n.scheme}
}

type decoder struct {
	runtime.Decoder
	scheme *runtime.Scheme
}

// Decode tries to decode the whole, and decodes each object by itself if that fails.
func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := d.Decoder.Decode(data, defaults, into)
	if err == nil {
		cleanAll(object)
		return object, kind, nil
	}
	if kind == nil || !IsCustom(kind.Group) {
		return object, kind, err //nolint:wrapcheck // Clients know the kinds of errors.
	}
	target := into
	if target == nil {
		if target, _ = d.scheme.New(*kind); target == nil {
			return object, kind, err //nolint:wrapcheck // as above
		}
	}
	if meta.IsListType(target) {
		if list(data, target) != nil {
			return object, kind, err //nolint:wrapcheck // as above
		}
		return target, kind, nil
	}
	if Object(data, target) != nil {
		return object, kind, err //nolint:wrapcheck // as above
	}
	return target, kind, nil
}

// cleanAll removes what only this package writes.
func cleanAll(object runtime.Object) {
	if single, ok := object.(metav1.Object); ok {
		clean(single)
		return
	}
	if meta.IsListType(object) {
		_ = meta.EachListItem(object, func(item runtime.Object) error {
			if single, ok := item.(metav1.Object); ok {
				clean(single)
			}
			return nil
		})
	}
}
