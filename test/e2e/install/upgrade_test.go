// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// upgrade is an installation whose programs are replaced while pods are marked.
type upgrade struct {
	*suite
	*history
	pods []*upgradePod
}

// step rolls the programs with helm, and changes answers of containers meanwhile and afterwards.
func (u *upgrade) step(name string, args ...string) {
	u.Helper()
	start := time.Now()
	u.helm(args...)
	for _, pod := range u.pods {
		if pod.turn == during {
			u.flip(pod)
			<-time.After(time.Second)
		}
	}
	for _, object := range []string{"deployment/seamark-manager", "daemonset/seamark-agent"} {
		u.Kubectl("rollout", "status", "--namespace", cluster.SystemNamespace, "--timeout", cluster.Timeout.String(), object)
	}
	u.onlyCurrentPods()
	rolled := time.Since(start)
	u.settled(name + ", during the rollout")
	for _, pod := range u.pods {
		if pod.turn == after {
			u.flip(pod)
		}
	}
	u.settled(name + ", after the rollout")
	if u.Failed() {
		u.FailNow()
	}
	u.Logf("%s: rolled out after %s, settled after %s", name, rolled.Round(time.Second), time.Since(start).Round(time.Second))
}

// onlyCurrentPods waits until the replaced pods of the programs are gone.
func (u *upgrade) onlyCurrentPods() {
	u.Helper()
	deployment, daemonSet := &appsv1.Deployment{}, &appsv1.DaemonSet{}
	cluster.Must(u, u.Client.Get(u.Context(), client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "seamark-manager"}, deployment))
	cluster.Must(u, u.Client.Get(u.Context(), client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "seamark-agent"}, daemonSet))
	want := int(*deployment.Spec.Replicas + daemonSet.Status.DesiredNumberScheduled)
	u.Eventually("the replaced pods are gone", func(ctx context.Context) error {
		out, err := u.TryKubectl(ctx, "get", "pods", "--namespace", cluster.SystemNamespace, "-l", "app.kubernetes.io/component in (manager,agent)", "-o", "name")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		got := strings.Count(out, "\n")
		return await.ErrorIf(got != want, "%d pods, want %d", got, want)
	})
}
