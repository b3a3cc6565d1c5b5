// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Kubeconfig is the path of a kubeconfig file, or empty for the default: $KUBECONFIG,
// ~/.kube/config, or the pod's service account.
type Kubeconfig string

// Bind defines the flag --kubeconfig in set.
func (k *Kubeconfig) Bind(set *pflag.FlagSet) {
	set.StringVar((*string)(k), "kubeconfig", "", "path of the kubeconfig file; default $KUBECONFIG, ~/.kube/config, or the pod's service account")
}

// Client returns the configuration of a client with the user agent.
func (k Kubeconfig) Client(userAgent string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = string(k)
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig=%q: load the API server's address: %w", k, err)
	}
	cfg.UserAgent = userAgent
	return cfg, nil
}
