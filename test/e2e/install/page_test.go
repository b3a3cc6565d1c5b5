// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/uipage"
	"github.com/seamark-dev/seamark/test/uistream"
)

// servePage opens the page of the manager as a developer, before and after its leader has ended.
func (u *upgrade) servePage() {
	s := u.suite
	s.Helper()
	page := uipage.Serve(s, "--mode=manager", "--kubeconfig="+s.developer(), "--namespace="+s.Namespace)
	query := "namespace=" + s.Namespace
	user := "system:serviceaccount:" + s.Namespace + ":developer"
	if session := uipage.Read[model.Session](page, "/api/v1/session?"+query); session.User != user || session.Source != model.SourceCluster {
		s.Errorf("session %+v, want user %s", session, user)
	}
	stream := uistream.Open(s, page.Client, page.Base, query)
	stream.Ready()
	if len(stream.Pods) != len(u.pods) || len(stream.Markers) != 3 {
		s.Errorf("the page has %d pods and %d markers, want %d and 3", len(stream.Pods), len(stream.Markers), len(u.pods))
	}
	if status, body := page.Get("/api/v1/session?namespace=kube-system"); status != http.StatusForbidden ||
		!strings.Contains(body, "rolebinding seamark-view -n kube-system --clusterrole=view --user="+user) {
		s.Errorf("another namespace: status %d: %s, want %d", status, body, http.StatusForbidden)
	}
	leader := s.newLeader("")
	s.Kubectl("delete", "pod", leader, "--namespace", cluster.SystemNamespace)
	s.Eventually("another manager serves the page", func(ctx context.Context) error {
		status, body, err := page.Try(ctx, "/api/v1/session?"+query)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", status, body)
		}
		return err
	})
	next := uistream.Open(s, page.Client, page.Base, query)
	if next.Ready(); len(next.Pods) != len(u.pods) {
		s.Errorf("the page of another manager has %d pods, want %d", len(next.Pods), len(u.pods))
	}
	// What follows needs a leader.
	s.newLeader(leader)
}

// newLeader waits until a manager other than the one before is the leader, and returns the name of its
// pod. A leader that ends releases the lease, which then has no holder.
func (s *suite) newLeader(before string) (name string) {
	s.Helper()
	s.Eventually("a manager is the leader", func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "seamark-manager"}, lease); err != nil {
			return err
		}
		if name, _, _ = strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_"); name == "" || name == before {
			return fmt.Errorf("the leader is %q", name)
		}
		return nil
	})
	return name
}

// developer returns the kubeconfig of a service account that may view the namespace and forward ports to
// the managers.
func (s *suite) developer() string {
	s.Helper()
	account := s.Namespace + ":developer"
	for _, args := range [][]string{
		{"create", "serviceaccount", "developer"},
		{"create", "rolebinding", "developer", "--clusterrole=view", "--serviceaccount=" + account},
		{"create", "clusterrole", s.Namespace, "--verb=list,create", "--resource=pods,pods/portforward"},
		{"create", "rolebinding", s.Namespace, "--clusterrole=" + s.Namespace, "--serviceaccount=" + account, "--namespace=" + cluster.SystemNamespace},
	} {
		s.Kubectl(args...)
	}
	s.Cleanup(func() {
		ctx := context.WithoutCancel(s.Context())
		for _, object := range [][]string{{"clusterrole", s.Namespace}, {"rolebinding", s.Namespace, "--namespace=" + cluster.SystemNamespace}} {
			if out, err := s.TryKubectl(ctx, append([]string{"delete"}, object...)...); err != nil {
				s.Errorf("delete %s: %v: %s", object[0], err, out)
			}
		}
	})
	config, err := clientcmd.LoadFromFile(s.Kubeconfig())
	cluster.Must(s, err)
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{"developer": {Token: strings.TrimSpace(s.Kubectl("create", "token", "developer"))}}
	for _, each := range config.Contexts {
		each.AuthInfo = "developer"
	}
	file := filepath.Join(s.TempDir(), "kubeconfig")
	cluster.Must(s, clientcmd.WriteToFile(*config, file))
	cluster.Must(s, os.Chmod(file, 0o600))
	return file
}
