// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig writes configurations of clients for programs that tests start.
package kubeconfig

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Write writes the configuration to a file: the server, how to verify it, and the credentials, which
// are a token, the path of one, or a client certificate.
func Write(path string, config *rest.Config) error {
	const name = "test"
	file := api.NewConfig()
	file.Clusters[name] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName}
	file.AuthInfos[name] = &api.AuthInfo{
		Token: config.BearerToken, TokenFile: config.BearerTokenFile,
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
	}
	file.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
