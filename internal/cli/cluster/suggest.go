// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// NotFound returns an error with the exit code exit.Failed that says that there is no object of
// the kind with the name, and which of the candidates is similar.
func NotFound(kind, name string, candidates []string, where string) error {
	message := fmt.Sprintf("%s %q not found%s", kind, name, where)
	if similar := text.Closest(name, candidates); similar != "" {
		message += fmt.Sprintf("; did you mean %q?", similar)
	}
	return exit.Failure(errors.New(message))
}

func notFound(kind string, names, candidates []string, where string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, NotFound(kind, name, candidates, where))
	}
	return errors.Join(errs...)
}

// names returns the names of all objects of the kind in the namespace. Only metadata is read.
func names(ctx context.Context, reader client.Reader, kind metav1.TypeMeta, namespace string) ([]string, error) {
	var found []string
	err := Each(ctx, reader, func() *metav1.PartialObjectMetadataList {
		return &metav1.PartialObjectMetadataList{TypeMeta: kind}
	}, func(page *metav1.PartialObjectMetadataList) {
		for i := range page.Items {
			found = append(found, page.Items[i].Name)
		}
	}, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("list names of %s: %w", strings.TrimSuffix(kind.Kind, "List"), err)
	}
	return found, nil
}

func podNames(ctx context.Context, reader client.Reader, namespace string) ([]string, error) {
	return names(ctx, reader, metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "PodList"}, namespace)
}

func markerNames(ctx context.Context, reader client.Reader, namespace string) ([]string, error) {
	return names(ctx, reader, metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "PodProbeMarkerList"}, namespace)
}

func nodeNames(ctx context.Context, reader client.Reader) ([]string, error) {
	return names(ctx, reader, metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "NodeList"}, "")
}

func namespaceNames(ctx context.Context, reader client.Reader) ([]string, error) {
	return names(ctx, reader, metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "NamespaceList"}, "")
}
