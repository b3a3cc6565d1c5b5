// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

// reminder is how often the manager logs that it still waits for the same CRDs.
const reminder = time.Minute

// crds waits until the API server serves the custom resources of the manager. It checks only that
// they are served: their schema may be older or newer, or that of OpenKruise.
type crds struct {
	mapper meta.RESTMapper
	log    logr.Logger
	// missing is why the manager waits, nil if it does not.
	missing atomic.Pointer[error]
}

func newCRDs(cfg *rest.Config, log logr.Logger) (*crds, error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("create the client for discovery: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("create the client for discovery: %w", err)
	}
	c := &crds{mapper: mapper, log: log}
	c.wait(errors.New("not checked yet"))
	return c, nil
}

func (c *crds) wait(reason error) { c.missing.Store(&reason) }

// unready returns why the manager waits.
func (c *crds) unready(*http.Request) error {
	if reason := c.missing.Load(); reason != nil {
		return *reason
	}
	return nil
}

// await returns when the resources are served or ctx ends, which it reports.
func (c *crds) await(ctx context.Context) bool {
	delay := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 7, Cap: 10 * time.Second}
	waited, logged, at := false, "", time.Time{}
	for {
		reason := c.unserved()
		if reason == nil {
			break
		}
		c.wait(reason)
		if text := reason.Error(); text != logged || time.Since(at) >= reminder {
			c.log.Info("Waiting for the CRDs", "reason", text)
			waited, logged, at = true, text, time.Now()
		}
		timer := time.NewTimer(delay.Step())
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
	c.missing.Store(nil)
	if waited {
		c.log.Info("The API server serves the CRDs")
	}
	return true
}

// unserved returns an error if the API server does not serve a resource or does not answer.
func (c *crds) unserved() error {
	kruise, own := v1alpha1.GroupVersion(), seamarkv1alpha1.GroupVersion()
	var missing []string
	for _, each := range []struct {
		kind     schema.GroupVersionKind
		resource string
	}{
		{kruise.WithKind("NodePodProbe"), "nodepodprobes"},
		{kruise.WithKind("PodProbeMarker"), "podprobemarkers"},
		{own.WithKind("ProbeReport"), "probereports"},
	} {
		name := each.resource + "." + each.kind.Group
		_, err := c.mapper.RESTMapping(each.kind.GroupKind(), each.kind.Version)
		switch {
		case err == nil:
		case meta.IsNoMatchError(err):
			missing = append(missing, name+"/"+each.kind.Version)
		default:
			return fmt.Errorf("discover %s: %w", name, err)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the API server does not serve %s: apply the CRDs of Seamark", strings.Join(missing, ", "))
}
