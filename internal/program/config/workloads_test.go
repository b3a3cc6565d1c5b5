// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

func loadWorkloads(t *testing.T, l line) (*v1alpha1.WorkloadsConfiguration, error) {
	t.Helper()
	set := newSet()
	w := NewWorkloads(set, "testdata/namespace")
	if err := l.parse(t, set); err != nil {
		return nil, err
	}
	return w.Load()
}

func TestWorkloads(t *testing.T) {
	for name, tc := range map[string]struct {
		line line
		want func(*v1alpha1.WorkloadsConfiguration)
	}{
		"no file and no flags": {want: func(*v1alpha1.WorkloadsConfiguration) {}},
		"file overrides defaults": {
			line{file: workloadsHead + "controllers: {cloneSet: {concurrency: 8}, statefulSet: {enabled: false}}"},
			func(c *v1alpha1.WorkloadsConfiguration) {
				c.Controllers.CloneSet.Concurrency, c.Controllers.StatefulSet.Enabled = 8, new(false)
			},
		},
		"a DaemonSet controller only": {
			line{file: workloadsHead + "controllers: {cloneSet: {enabled: false}, statefulSet: {enabled: false}, daemonSet: {enabled: true, concurrency: 4}}"},
			func(c *v1alpha1.WorkloadsConfiguration) {
				c.Controllers.CloneSet.Enabled, c.Controllers.StatefulSet.Enabled = new(false), new(false)
				c.Controllers.DaemonSet = v1alpha1.WorkloadController{Enabled: new(true), Concurrency: 4}
			},
		},
		"namespace of OpenKruise": {
			line{file: workloadsHead + "openKruise: {namespace: kruise}"},
			func(c *v1alpha1.WorkloadsConfiguration) { c.OpenKruise.Namespace = "kruise" },
		},
		"gates": {
			line{
				file: workloadsHead + "featureGates: {AllAlpha: true, " + RecreateForClaimsGate + ": false}",
				args: []string{"--feature-gates=" + RecreateForClaimsGate + "=true"},
			},
			func(c *v1alpha1.WorkloadsConfiguration) {
				for _, gate := range []string{"AllAlpha", RecreateForClaimsGate, SidecarSetMetadataGate, PreDownloadDaemonSetGate, PreDownloadInPlaceGate} {
					c.FeatureGates[gate] = true
				}
			},
		},
		"SidecarSets": {
			line{
				file: workloadsHead + "controllers: {sidecarSet: {enabled: true}}\ninjector: {port: 443, certificates: certManager, url: \"https://injector:443\"}",
			},
			func(c *v1alpha1.WorkloadsConfiguration) {
				c.Controllers.SidecarSet.Enabled = new(true)
				c.Injector.Port, c.Injector.Certificates, c.Injector.URL = 443, v1alpha1.CertificatesByCertManager, "https://injector:443"
			},
		},
		"flags override the file": {
			line{
				file: workloadsHead + "metrics: {bindAddress: \":1\"}\nleaderElection: {resourceNamespace: kube-system}",
				args: []string{
					"--leader-elect=false", "--leader-election-namespace=games", "--metrics-bind-address=0", "--health-probe-bind-address=:2", "-v=4",
				},
			},
			func(c *v1alpha1.WorkloadsConfiguration) {
				c.LeaderElection = v1alpha1.LeaderElection{LeaderElect: new(false), ResourceNamespace: "games"}
				c.Metrics.BindAddress, c.Health.BindAddress, c.Logging.Verbosity = "0", ":2", 4
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := loadWorkloads(t, tc.line)
			expect.NoError(t, err)
			want := &v1alpha1.WorkloadsConfiguration{}
			v1alpha1.SetWorkloadsDefaults(want)
			want.LeaderElection.ResourceNamespace = "marks"
			want.FeatureGates = map[string]bool{
				RecreateForClaimsGate: false, SidecarSetMetadataGate: false, PreDownloadDaemonSetGate: false, PreDownloadInPlaceGate: false,
			}
			tc.want(want)
			expect.Equal(t, "configuration", want, got)
		})
	}
}

func TestInvalidWorkloads(t *testing.T) {
	for name, tc := range map[string]struct {
		line line
		want string
	}{
		"unknown controller": {
			line{file: workloadsHead + "controllers: {unitedDeployment: {}}"},
			`unknown field "controllers.unitedDeployment"`,
		},
		"concurrency": {
			line{file: workloadsHead + "controllers: {statefulSet: {concurrency: 257}}"},
			"controllers.statefulSet.concurrency: Invalid value: 257: must be between 1 and 256, inclusive",
		},
		"no controller": {
			line{file: workloadsHead + "controllers: {cloneSet: {enabled: false}, statefulSet: {enabled: false}}"},
			"controllers.cloneSet.enabled: Invalid value: false: must be true if all other controllers are disabled: at least one controller must run",
		},
		"concurrency of DaemonSets": {
			line{file: workloadsHead + "controllers: {daemonSet: {concurrency: 257}}"},
			"controllers.daemonSet.concurrency: Invalid value: 257: must be between 1 and 256, inclusive",
		},
		"concurrency of BroadcastJobs": {
			line{file: workloadsHead + "controllers: {broadcastJob: {concurrency: 257}}"},
			"controllers.broadcastJob.concurrency: Invalid value: 257: must be between 1 and 256, inclusive",
		},
		"namespace of OpenKruise": {
			line{file: workloadsHead + "openKruise: {namespace: Kruise}"},
			"openKruise.namespace: Invalid value: \"Kruise\": a lowercase RFC 1123 label",
		},
		"certificates of the injector": {
			line{file: workloadsHead + "injector: {certificates: own}"},
			`injector.certificates: Unsupported value: "own": supported values: "seamark", "certManager"`,
		},
		"folder of certificates": {
			line{file: workloadsHead + "injector: {certificateDirectory: certs}"},
			`injector.certificateDirectory: Invalid value: "certs": must be an absolute path`,
		},
		"authorities of API servers": {
			line{file: workloadsHead + "injector: {clientCAFile: ca.crt}"},
			`injector.clientCAFile: Invalid value: "ca.crt": must be an absolute path`,
		},
		"URL of the injector": {
			line{file: workloadsHead + "injector: {url: \"http://injector\"}"},
			`injector.url: Invalid value: "http://injector": must be https://host:port, without a path`,
		},
		"pulls of a node": {
			line{file: workloadsHead + "imagePull: {perNode: 101}"},
			"imagePull.perNode: Invalid value: 101: must be between 1 and 100, inclusive",
		},
		"pulls in the cluster": {
			line{file: workloadsHead + "imagePull: {total: -1}"},
			"imagePull.total: Invalid value: -1: must be between 1 and 10000, inclusive",
		},
		"nodes of pulls": {
			line{file: workloadsHead + "imagePull: {nodeSelector: {matchExpressions: [{key: a, operator: In}]}}"},
			"imagePull.nodeSelector: Invalid value",
		},
		"pulls before updates without their controller": {
			line{file: workloadsHead + "featureGates: {PreDownloadImageForDaemonSetUpdate: true}"},
			`featureGates[PreDownloadImageForDaemonSetUpdate]: Invalid value: true: requires controllers.imagePullJob.enabled`,
		},
		"gate of the manager": {
			line{file: workloadsHead + "featureGates: {PodProbeMarkerGate: true}"},
			`featureGates[PodProbeMarkerGate]: Unsupported value: "PodProbeMarkerGate": supported values: "AllAlpha", "AllBeta", "PreDownloadImageForDaemonSetUpdate", "PreDownloadImageForInPlaceUpdate", "RecreatePodWhenChangeVCTInCloneSetGate"`,
		},
		"namespace of the lease": {
			line{args: []string{"--leader-election-namespace=A"}},
			"--leader-election-namespace=\"A\": a lowercase RFC 1123 label",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadWorkloads(t, tc.line)
			checkProblems(t, err, []string{tc.want})
		})
	}
}
