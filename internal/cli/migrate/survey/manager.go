// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/migrate"
)

// managerName is the name of the Deployment of OpenKruise's manager.
const managerName = "kruise-controller-manager"

// manager reads how OpenKruise's manager runs, if there are sets. It may be in any namespace.
func (r *reading) manager(ctx context.Context) {
	if len(r.cluster.CloneSets)+len(r.cluster.StatefulSets) == 0 {
		return
	}
	err := pages(ctx, r.reader, func() *appsv1.DeploymentList { return &appsv1.DeploymentList{} }, func(l *appsv1.DeploymentList) bool {
		for i := range l.Items {
			r.cluster.Manager = managerOf(&l.Items[i])
		}
		return r.cluster.Manager == nil
	}, client.MatchingFields{"metadata.name": managerName})
	r.failed("deployments", err)
}

// managerOf returns the flags of the manager that decide about findings, with OpenKruise's defaults.
func managerOf(deployment *appsv1.Deployment) *migrate.Manager {
	m := &migrate.Manager{Namespace: deployment.Namespace, Name: deployment.Name, Gates: map[string]bool{}}
	flags := pflag.NewFlagSet(managerName, pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.BoolVar(&m.LeaderElection, "enable-leader-election", true, "")
	flags.StringVar(&m.LeaseNamespace, "leader-election-namespace", "kruise-system", "")
	flags.StringVar(&m.LeaseName, "leader-election-id", "kruise-manager", "")
	gates := flags.StringSlice("feature-gates", nil, "")
	containers := deployment.Spec.Template.Spec.Containers
	if i := max(slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "manager" }), 0); i < len(containers) {
		// The manager does not start with a flag that cannot be parsed.
		_ = flags.Parse(slices.Concat(containers[i].Command, containers[i].Args))
	}
	setGates(m.Gates, *gates)
	return m
}

// setGates records the gates that a flag turns on. AllAlpha turns on those that the flag does not name.
func setGates(on map[string]bool, flag []string) {
	for _, pair := range flag {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		on[name], _ = strconv.ParseBool(value)
	}
	for _, gate := range []string{migrate.GateStartOrdinal, migrate.GateResize, migrate.GateExpand, migrate.GatePreDownload, migrate.GateNoDefaults} {
		if _, named := on[gate]; !named {
			on[gate] = on["AllAlpha"]
		}
	}
}
