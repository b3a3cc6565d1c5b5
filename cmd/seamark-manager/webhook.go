// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/go-logr/logr"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/config"
	"github.com/seamark-dev/seamark/internal/webhook"
)

// webhookOptions says to the webhook what the configuration says.
func webhookOptions(c v1alpha1.Webhook, logger logr.Logger) *webhook.Options {
	options := &webhook.Options{
		Port:          int(c.Port),
		Namespace:     config.OwnNamespace(namespaceFile),
		Service:       c.ServiceName,
		Secret:        c.SecretName,
		Configuration: c.ConfigurationName,
		Logger:        logger,
	}
	if c.Certificates == v1alpha1.CertificatesByCertManager {
		options.CertificateDirectory = c.CertificateDirectory
	}
	return options
}
