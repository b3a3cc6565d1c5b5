// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package startup contains what the programs that run controllers share around their controllers:
// the wait for CRDs, the health checks, the manager that runs them, and the recorder of events.
package startup

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
)

// reminder is how often a program logs that it still waits for the same CRDs.
const reminder = time.Minute

// crds waits until the API server serves the custom resources of a program. It checks only that
// they are served: their schema may be older or newer, or that of OpenKruise.
type crds struct {
	// mapper knows the resources that were waited for.
	mapper meta.RESTMapper
	// client has the connections of all readers of custom resources.
	client *http.Client

	kinds []schema.GroupVersionKind
	log   logr.Logger
	// missing is why the program waits, nil if it does not.
	missing atomic.Pointer[error]
}

// newCRDs returns a crds for the kinds. It does not connect to the API server.
func newCRDs(cfg *rest.Config, log logr.Logger, kinds ...schema.GroupVersionKind) (*crds, error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("create the client for discovery: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("create the client for discovery: %w", err)
	}
	c := &crds{mapper: mapper, client: client, kinds: kinds, log: log}
	c.wait(errors.New("not checked yet"))
	return c, nil
}

func (c *crds) wait(reason error) { c.missing.Store(&reason) }

// unready returns why the program waits.
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
	var missing []string
	for _, each := range c.kinds {
		resource, _ := meta.UnsafeGuessKindToResource(each)
		name := resource.GroupResource().String()
		_, err := c.mapper.RESTMapping(each.GroupKind(), each.Version)
		switch {
		case err == nil:
		case meta.IsNoMatchError(err):
			missing = append(missing, name+"/"+each.Version)
		default:
			return fmt.Errorf("discover %s: %w", name, err)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the API server does not serve %s: apply the CRDs of Seamark", strings.Join(missing, ", "))
}
