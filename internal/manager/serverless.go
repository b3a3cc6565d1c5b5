// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"

	"k8s.io/client-go/rest"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/internal/manager/virtualpod"
	"github.com/seamark-dev/seamark/internal/manager/webhook"
)

// newWebhook returns a webhook without a server if the webhook is disabled.
func newWebhook(cfg *rest.Config, options Options) *webhook.Webhook {
	if options.Disabled || !options.Serverless || options.Webhook == nil {
		return &webhook.Webhook{}
	}
	return webhook.New(cfg, *options.Webhook)
}

// addServerless adds support for pods on virtual nodes: the controller, which runs in the
// leader, and the webhook, which runs in every manager.
func addServerless(ctx context.Context, mgr ctrlmanager.Manager, hook *webhook.Webhook, dependencies serverless.Options, options Options) error {
	if !options.Serverless {
		return nil
	}
	err := serverless.New(dependencies).Add(mgr, mgr.GetCache(), int(options.Controllers.Serverless.Concurrency))
	if err != nil || hook.Server == nil {
		return err
	}
	return hook.Add(ctx, mgr, dependencies.Reader)
}
