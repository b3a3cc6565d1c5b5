// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// checkConfigured returns an error if the address of the cluster is neither in a kubeconfig nor given otherwise. kubectl
// connects to a default address on this machine then, on which anything may listen.
func (f *Flags) checkConfigured(config *rest.Config) error {
	const master = "KUBERNETES_MASTER" // which clientcmd reads
	if config.Host != clientcmd.ClusterDefaults.Server || ptr.Deref(f.APIServer, "") != "" || os.Getenv(master) != "" {
		return nil
	}
	loader := f.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	if ptr.Deref(f.Context, "") != "" || ptr.Deref(f.ClusterName, "") != "" || raw.Contexts[raw.CurrentContext] != nil {
		return nil
	}
	source := "KUBECONFIG is not set"
	switch {
	case ptr.Deref(f.KubeConfig, "") != "":
		source = "from --kubeconfig"
	case os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "":
		source = "from KUBECONFIG"
	}
	return notConfigured(&raw, loader.ConfigAccess().GetLoadingPrecedence(), source)
}

// maxContexts is the number of contexts that an error names.
const maxContexts = 10

// notConfigured says why no cluster is known, where a kubeconfig was looked for, and what to do. The source says where the
// paths come from.
func notConfigured(config *api.Config, paths []string, source string) error {
	where := strings.Join(paths, ", ")
	if contexts := slices.Sorted(maps.Keys(config.Contexts)); len(contexts) > 0 {
		if len(contexts) > maxContexts {
			contexts = append(contexts[:maxContexts], "...")
		}
		return fmt.Errorf("no current context in the kubeconfig %s (%s): use --context with one of %s, or run `kubectl config use-context`",
			where, source, strings.Join(contexts, ", "))
	}
	for _, path := range paths {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("no cluster in the kubeconfig %s (%s): %s", where, source, whatToDo)
		}
	}
	return fmt.Errorf("no kubeconfig found in %s (%s): %s", where, source, whatToDo)
}

const whatToDo = "set KUBECONFIG or use --kubeconfig; `seamark local` needs no cluster"
