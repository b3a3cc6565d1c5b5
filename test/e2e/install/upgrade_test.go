// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// Image names of the programs: those of this build, and those of the previous release that
// `make previous-release` builds.
const (
	currentManager, previousManager = "seamark-manager", "previous-manager"
	currentAgent, previousAgent     = "seamark-agent", "previous-agent"
)

// upgrade is an installation that moves between the previous release and this build.
type upgrade struct {
	*suite
	*history
	pods []*upgradePod
	// chart is the folder of the previous release's chart.
	chart string
}

// fromPreviousRelease installs the previous release, upgrades it and rolls back to it, with each
// program first. The marks of a pod change only after the test has changed the answers of its
// containers.
func (u *upgrade) fromPreviousRelease() {
	u.Helper()
	u.installPrevious()
	u.reached("previous release")
	u.forget()
	u.reportsInStatus()
	// The previous manager creates no RoleBindings.
	u.step("upgrade the agents first", append(u.images(previousManager, currentAgent), "--set", "workloads.namespaces={default}")...)
	u.reportsInBoth()
	u.step("then the managers", u.images(currentManager, currentAgent)...)
	u.reportsInBoth()
	u.step("roll back the agents first", u.images(currentManager, previousAgent)...)
	u.reportsInStatus()
	u.step("then the release", "rollback", release, "1", "--history-max", "0", "--force-conflicts")
	u.reportsInStatus()
}

// images returns the arguments of an upgrade to the current chart with these images.
func (u *upgrade) images(manager, agent string) []string {
	return []string{
		"upgrade", release, "charts/seamark", "-f", u.values, "--history-max", "0", "--force-conflicts",
		"--set", "manager.image.repository=" + manager, "--set", "agent.image.repository=" + agent,
	}
}

// installPrevious installs the previous release, as it is on a cluster that has never had this build.
func (u *upgrade) installPrevious() {
	u.Helper()
	u.Kubectl("delete", "crd", "probeplans.seamark.dev", "probereports.seamark.dev", "--ignore-not-found")
	// Other tests have written the CRDs.
	u.helm("install", release, u.chart, "--force-conflicts", "-f", u.previousValues(), "--set", "manager.image.repository="+previousManager,
		"--set", "agent.image.repository="+previousAgent, "--wait", "--timeout", cluster.Timeout.String())
}

// previousValues returns a file with the initial values of the release, except for seamark-workloads
// and SidecarSets, which the previous release does not have.
func (u *upgrade) previousValues() string {
	u.Helper()
	content, err := os.ReadFile(u.values)
	cluster.Must(u, err)
	values := map[string]any{}
	cluster.Must(u, yaml.Unmarshal(content, &values))
	for _, later := range []string{"workloads", "sidecarSets", "injector"} {
		delete(values, later)
	}
	content, err = yaml.Marshal(values)
	cluster.Must(u, err)
	file := filepath.Join(u.TempDir(), "previous.yaml")
	cluster.Must(u, os.WriteFile(file, content, 0o600))
	return file
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
		if got := strings.Count(out, "\n"); got != want {
			return fmt.Errorf("%d pods, want %d", got, want)
		}
		return nil
	})
}

// reportsInStatus expects that the agents of the previous release report: in NodePodProbe.status.
func (u *upgrade) reportsInStatus() {
	u.Helper()
	u.Eventually("the states are in NodePodProbe.status", func(ctx context.Context) error {
		return u.eachPlan(ctx, func(plan *v1alpha1.NodePodProbe) error {
			if plan.Status.ProbeReports || !u.reported(plan) {
				return fmt.Errorf("NodePodProbe %s has probeReports %t and %d pods in its status", plan.Name, plan.Status.ProbeReports, len(plan.Status.PodProbeStatuses))
			}
			return nil
		})
	})
}

// reportsInBoth expects that the agents of this build report in slices, and copy the states to
// NodePodProbe.status for the previous release.
func (u *upgrade) reportsInBoth() {
	u.Helper()
	u.Eventually("the states are in ProbeReports and in NodePodProbe.status", func(ctx context.Context) error {
		var slices seamarkv1alpha1.ProbeReportList
		if err := u.Client.List(ctx, &slices); err != nil {
			return err
		}
		reported := map[string]int{}
		for _, slice := range slices.Items {
			for _, pod := range slice.Pods {
				if pod.Namespace == u.Namespace {
					reported[pod.UID]++
				}
			}
		}
		if len(reported) != len(u.pods) {
			return fmt.Errorf("%d pods are in ProbeReports, want %d", len(reported), len(u.pods))
		}
		for uid, times := range reported {
			if times != 1 {
				return fmt.Errorf("pod %s is in %d ProbeReports", uid, times)
			}
		}
		return u.eachPlan(ctx, func(plan *v1alpha1.NodePodProbe) error {
			if !plan.Status.ProbeReports || !u.reported(plan) {
				return fmt.Errorf("NodePodProbe %s has probeReports %t and %d pods in its status", plan.Name, plan.Status.ProbeReports, len(plan.Status.PodProbeStatuses))
			}
			return nil
		})
	})
}

// reported reports whether the status of the plan has all pods of the test that the plan has.
func (u *upgrade) reported(plan *v1alpha1.NodePodProbe) bool {
	stated := map[string]bool{}
	for _, pod := range plan.Status.PodProbeStatuses {
		stated[pod.UID] = true
	}
	for _, pod := range plan.Spec.PodProbes {
		if pod.Namespace == u.Namespace && !stated[pod.UID] {
			return false
		}
	}
	return true
}

func (u *upgrade) eachPlan(ctx context.Context, check func(*v1alpha1.NodePodProbe) error) error {
	var plans v1alpha1.NodePodProbeList
	if err := u.Client.List(ctx, &plans); err != nil {
		return err
	}
	for i := range plans.Items {
		if err := check(&plans.Items[i]); err != nil {
			return err
		}
	}
	return nil
}
