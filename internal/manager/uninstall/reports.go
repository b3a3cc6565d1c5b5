// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

const (
	// sweeps is the maximum number of times that all reports are deleted: agents may still write
	// some while they stop their probes.
	sweeps = 3
	// deletions is the number of concurrent deletions of a page. The API server deletes the
	// objects of a page one after the other.
	deletions = 8
)

// deleteReports deletes all ProbeReports, page by page, and returns their number.
func (u *uninstaller) deleteReports(ctx context.Context) (int, error) {
	reports := u.metadata.Resource(seamarkv1alpha1.GroupVersion().WithResource("probereports"))
	total := 0
	for range sweeps {
		deleted, err := sweep(ctx, reports)
		total += deleted
		if err != nil {
			return total, fmt.Errorf("delete ProbeReports: %w", err)
		}
		if deleted == 0 {
			break
		}
	}
	return total, nil
}

// sweep deletes each page of the resource with one request and returns the number of objects that
// were not being deleted before. A resource that is not served has no objects.
func sweep(ctx context.Context, resource metadata.ResourceInterface) (int, error) {
	var deleted atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(deletions)
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := resource.List(ctx, options)
		if apierrors.IsNotFound(err) {
			break
		}
		if err != nil {
			// A failed deletion ends the context of the list.
			if failed := group.Wait(); failed != nil {
				err = failed
			}
			return int(deleted.Load()), err
		}
		live := 0
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp == nil {
				live++
			}
		}
		if live > 0 {
			selected := options
			group.Go(func() error {
				err := resource.DeleteCollection(ctx, metav1.DeleteOptions{}, selected)
				if err == nil {
					deleted.Add(int64(live))
				}
				return err
			})
		}
		if list.Continue == "" {
			break
		}
		options.Continue = list.Continue
	}
	err := group.Wait()
	return int(deleted.Load()), err
}
