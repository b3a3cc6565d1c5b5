// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

const (
	managerHead = "apiVersion: config.seamark.dev/v1alpha1\nkind: ManagerConfiguration\n"
	agentHead   = "apiVersion: config.seamark.dev/v1alpha1\nkind: AgentConfiguration\n"

	workloadsHead = "apiVersion: config.seamark.dev/v1alpha1\nkind: WorkloadsConfiguration\n"
)

// line is the input of a program: the content of the file, or none, and flags.
type line struct {
	file string
	args []string
}

// parse writes the file and parses the flags.
func (l line) parse(t *testing.T, set *pflag.FlagSet) error {
	t.Helper()
	args := l.args
	if l.file != "" {
		path := filepath.Join(t.TempDir(), "config.yaml")
		expect.NoError(t, os.WriteFile(path, []byte(l.file), 0o600))
		args = append([]string{"--config=" + path}, args...)
	}
	return set.Parse(args)
}

func newSet() *pflag.FlagSet {
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	return set
}

func loadManager(t *testing.T, l line) (*v1alpha1.ManagerConfiguration, error) {
	t.Helper()
	set := newSet()
	m := NewManager(set, "testdata/namespace")
	if err := l.parse(t, set); err != nil {
		return nil, err
	}
	return m.Load()
}

func loadAgent(t *testing.T, l line) (*v1alpha1.AgentConfiguration, error) {
	t.Helper()
	set := newSet()
	a := NewAgent(set, "node-1")
	if err := l.parse(t, set); err != nil {
		return nil, err
	}
	return a.Load()
}

func managerDefaults(change func(*v1alpha1.ManagerConfiguration)) *v1alpha1.ManagerConfiguration {
	c := &v1alpha1.ManagerConfiguration{}
	v1alpha1.SetManagerDefaults(c)
	c.FeatureGates = map[string]bool{PodProbeMarkerGate: true, ServerlessGate: false}
	c.LeaderElection.ResourceNamespace = "marks"
	change(c)
	return c
}

func TestManager(t *testing.T) {
	cases := map[string]struct {
		line line
		want func(*v1alpha1.ManagerConfiguration)
	}{
		"no file and no flags": {want: func(*v1alpha1.ManagerConfiguration) {}},
		"empty file":           {line{file: managerHead}, func(*v1alpha1.ManagerConfiguration) {}},
		"JSON file": {
			line{file: `{"apiVersion":"config.seamark.dev/v1alpha1","kind":"ManagerConfiguration","logging":{"verbosity":2}}`},
			func(c *v1alpha1.ManagerConfiguration) { c.Logging.Verbosity = 2 },
		},
		"file overrides defaults": {
			line{file: "# moved over\n---\n" + managerHead + `
leaderElection: {leaderElect: false, resourceNamespace: kube-system}
pprof: {bindAddress: "127.0.0.1:6060"}
controllers: {podMark: {concurrency: 8}}
probeDefaults: {periodSeconds: 1, failureThreshold: 1}
excludedNamespaces: []
messageUpdates: Immediate
featureGates: {EnablePodProbeMarkerOnServerless: true}
serverless: {webhook: {certificates: certManager}}
`},
			func(c *v1alpha1.ManagerConfiguration) {
				c.LeaderElection = v1alpha1.LeaderElection{LeaderElect: new(false), ResourceNamespace: "kube-system"}
				c.Pprof.BindAddress = "127.0.0.1:6060"
				c.Controllers.PodMark.Concurrency = 8
				c.ProbeDefaults.PeriodSeconds, c.ProbeDefaults.FailureThreshold = 1, 1
				c.ExcludedNamespaces = []string{}
				c.MessageUpdates = appsv1alpha1.MessageUpdatesImmediate
				c.FeatureGates[ServerlessGate] = true
				c.Serverless.Webhook.Certificates = v1alpha1.CertificatesByCertManager
			},
		},
		"flags override the file": {
			line{
				file: managerHead + `
leaderElection: {leaderElect: false, resourceNamespace: kube-system}
metrics: {bindAddress: ":1"}
health: {bindAddress: ":2"}
logging: {verbosity: 3, format: json}
`,
				args: []string{"--leader-elect", "--leader-election-namespace=games", "--metrics-bind-address=0", "-v=0", "--logging-format=text"},
			},
			func(c *v1alpha1.ManagerConfiguration) {
				c.LeaderElection.ResourceNamespace = "games"
				c.Metrics.BindAddress, c.Health.BindAddress = "0", ":2"
			},
		},
		"flag with the default value overrides the file": {
			line{file: managerHead + "metrics: {bindAddress: \":1\"}", args: []string{"--metrics-bind-address=:8080"}},
			func(*v1alpha1.ManagerConfiguration) {},
		},
		"gates in file and flags are merged": {
			line{
				file: managerHead + "featureGates: {EnablePodProbeMarkerOnServerless: true, PodProbeMarkerGate: true}",
				args: []string{"--feature-gates=PodProbeMarkerGate=false"},
			},
			func(c *v1alpha1.ManagerConfiguration) {
				c.FeatureGates = map[string]bool{PodProbeMarkerGate: false, ServerlessGate: true}
			},
		},
		"gates by stage": {
			line{args: []string{"--feature-gates=AllAlpha=true,AllBeta=false"}},
			func(c *v1alpha1.ManagerConfiguration) {
				c.FeatureGates = map[string]bool{"AllAlpha": true, "AllBeta": false, PodProbeMarkerGate: false, ServerlessGate: true}
			},
		},
		"gates by stage and name": {
			line{file: managerHead + "featureGates: {AllBeta: false, PodProbeMarkerGate: true}"},
			func(c *v1alpha1.ManagerConfiguration) { c.FeatureGates["AllBeta"] = false },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := loadManager(t, tc.line)
			expect.NoError(t, err)
			expect.Equal(t, "configuration", managerDefaults(tc.want), got)
		})
	}
}

func TestNamespaceWithoutPod(t *testing.T) {
	set := newSet()
	c, err := NewManager(set, "testdata/none").Load()
	expect.NoError(t, err)
	expect.Equal(t, "namespace", v1alpha1.DefaultNamespace, c.LeaderElection.ResourceNamespace)
}

func TestAgent(t *testing.T) {
	cases := map[string]struct {
		line line
		want func(*v1alpha1.AgentConfiguration)
	}{
		"no file and no flags": {want: func(*v1alpha1.AgentConfiguration) {}},
		"file overrides defaults": {
			line{file: agentHead + "criEndpoint: /run/x.sock\nexecConcurrency: 4\nprobeRate: 500\nreportInterval: 1m\nlogging: {format: json}"},
			func(c *v1alpha1.AgentConfiguration) {
				c.CRIEndpoint, c.ExecConcurrency, c.ProbeRate = "/run/x.sock", 4, 500
				c.ReportInterval.Duration, c.Logging.Format = time.Minute, v1alpha1.LogJSON
			},
		},
		"flags override the file": {
			line{
				file: agentHead + "criEndpoint: /run/x.sock\nexecConcurrency: 4\npprof: {bindAddress: \"127.0.0.1:1\"}",
				args: []string{"--cri-endpoint=unix:///run/y.sock", "--exec-concurrency=5", "--probe-rate=100", "--pprof-bind-address=[::1]:2", "--v=4"},
			},
			func(c *v1alpha1.AgentConfiguration) {
				c.CRIEndpoint, c.ExecConcurrency, c.ProbeRate = "unix:///run/y.sock", 5, 100
				c.Pprof.BindAddress, c.Logging.Verbosity = "[::1]:2", 4
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := loadAgent(t, tc.line)
			expect.NoError(t, err)
			want := &v1alpha1.AgentConfiguration{}
			v1alpha1.SetAgentDefaults(want)
			tc.want(want)
			expect.Equal(t, "configuration", want, got)
		})
	}
}

func TestManagerRejectsInvalidConfiguration(t *testing.T) {
	cases := map[string]struct {
		line line
		want []string
	}{
		"unknown field": {
			line{file: managerHead + "probeDefaults: {perodSeconds: 1}\nlogs: {}"},
			[]string{`strict decoding error: unknown field "logs", unknown field "probeDefaults.perodSeconds"`},
		},
		"duplicate field": {
			line{file: managerHead + "logging:\n  verbosity: 1\n  verbosity: 2"},
			[]string{"yaml: unmarshal errors", `line 5: key "verbosity" already set in map`},
		},
		"duplicate field in JSON": {
			line{file: `{"apiVersion":"config.seamark.dev/v1alpha1","kind":"ManagerConfiguration","logging":{"verbosity":1,"verbosity":2}}`},
			[]string{"yaml: unmarshal errors", `line 1: key "verbosity" already set in map`},
		},
		"wrong type": {
			line{file: managerHead + "probeDefaults: {periodSeconds: often}"},
			[]string{"probeDefaults.periodSeconds of type int32"},
		},
		"other version": {
			line{file: "apiVersion: config.seamark.dev/v1\nkind: ManagerConfiguration"},
			[]string{
				`apiVersion "config.seamark.dev/v1", kind "ManagerConfiguration": must be apiVersion "config.seamark.dev/v1alpha1", kind "ManagerConfiguration"`,
			},
		},
		"other kind": {
			line{file: agentHead},
			[]string{`kind "AgentConfiguration": must be apiVersion "config.seamark.dev/v1alpha1", kind "ManagerConfiguration"`},
		},
		"no kind":              {line{file: "logging: {}"}, []string{`apiVersion "", kind "": must be apiVersion`}},
		"file without content": {line{file: "# nothing"}, []string{"contains 0 documents: must be 1"}},
		"two documents":        {line{file: managerHead + "---\n" + managerHead}, []string{"contains 2 documents: must be 1"}},
		"missing file":         {line{args: []string{"--config=/nowhere"}}, []string{`--config="/nowhere"`, "no such file"}},
		"invalid YAML":         {line{file: "\tx"}, []string{"--config=", "yaml: "}},
		"unknown gate": {
			line{file: managerHead + "featureGates: {Everything: true}"},
			[]string{
				`featureGates[Everything]: Unsupported value: "Everything": supported values: "AllAlpha", "AllBeta", "EnablePodProbeMarkerOnServerless", "PodProbeMarkerGate"`,
			},
		},
		"unknown gate in flag": {
			line{args: []string{"--feature-gates=Everything=true"}},
			[]string{
				`"--feature-gates"`,
				`unknown feature gate "Everything": must be one of AllAlpha, AllBeta, EnablePodProbeMarkerOnServerless, PodProbeMarkerGate`,
			},
		},
		"gate that is not a boolean": {
			line{args: []string{"--feature-gates=PodProbeMarkerGate=half"}},
			[]string{`PodProbeMarkerGate="half": must be true or false`},
		},
		"all errors at once": {
			line{
				file: managerHead + `
metrics: {bindAddress: here}
health: {bindAddress: ":65536"}
pprof: {bindAddress: ":6060"}
logging: {verbosity: 11, format: xml}
leaderElection: {resourceNamespace: My NS}
controllers: {nodeProbe: {concurrency: -1}, podMark: {concurrency: 257}, marker: {concurrency: -1}, serverless: {concurrency: -1}}
probeDefaults: {initialDelaySeconds: -1, periodSeconds: -1, timeoutSeconds: -1, successThreshold: -1, failureThreshold: -1}
messageUpdates: immediate
serverless: {webhook: {port: 65536, certificates: mine, certificateDirectory: here, clientCAFile: ca.crt, secretName: A, serviceName: A, configurationName: A}}
`,
				args: []string{"--metrics-bind-address=", "--health-probe-bind-address=8081"},
			},
			[]string{
				`--metrics-bind-address="": must be host:port, :port or 0`,
				`--health-probe-bind-address="8081": must be host:port, :port or 0`,
				`pprof.bindAddress: Invalid value: ":6060": must be a loopback address and port, such as 127.0.0.1:6060 or [::1]:6060, or 0`,
				`logging.verbosity: Invalid value: 11: must be between 0 and 10, inclusive`,
				`logging.format: Unsupported value: "xml": supported values: "text", "json"`,
				`leaderElection.resourceNamespace: Invalid value: "My NS"`,
				`controllers.nodeProbe.concurrency: Invalid value: -1: must be between 1 and 256, inclusive`,
				`controllers.podMark.concurrency: Invalid value: 257: must be between 1 and 256, inclusive`,
				`controllers.marker.concurrency: `, `controllers.serverless.concurrency: `,
				`probeDefaults.initialDelaySeconds: Invalid value: -1: must be greater than or equal to 0`,
				`probeDefaults.periodSeconds: Invalid value: -1: must be greater than or equal to 1`,
				`probeDefaults.timeoutSeconds: `, `probeDefaults.successThreshold: `, `probeDefaults.failureThreshold: `,
				`messageUpdates: Unsupported value: "immediate": supported values: "Limited", "Immediate"`,
				`serverless.webhook.port: Invalid value: 65536: must be between 1 and 65535, inclusive`,
				`serverless.webhook.certificates: Unsupported value: "mine": supported values: "seamark", "certManager"`,
				`serverless.webhook.certificateDirectory: Invalid value: "here": must be an absolute path`,
				`serverless.webhook.clientCAFile: Invalid value: "ca.crt": must be an absolute path`,
				`serverless.webhook.secretName: `, `serverless.webhook.serviceName: `, `serverless.webhook.configurationName: `,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := loadManager(t, tc.line)
			checkProblems(t, err, tc.want)
		})
	}
}

func TestAgentRejectsInvalidConfiguration(t *testing.T) {
	cases := map[string]struct {
		line line
		want []string
	}{
		"file of the manager": {line{file: managerHead}, []string{`must be apiVersion "config.seamark.dev/v1alpha1", kind "AgentConfiguration"`}},
		"invalid duration":    {line{file: agentHead + "reportInterval: soon"}, []string{"soon"}},
		"all errors at once, including the node name": {
			line{
				file: agentHead + "criEndpoint: tcp://x\nreportInterval: 99ms\nmetrics: {bindAddress: here}",
				args: []string{"--exec-concurrency=1025", "--pprof-bind-address=localhost:6060", "--node-name=Node 1"},
			},
			[]string{
				`criEndpoint: Invalid value: "tcp://x": must be unix:///path or the absolute path of a socket`,
				`--exec-concurrency=1025: must be between 1 and 1024, inclusive`,
				`reportInterval: Invalid value: "99ms": must be between 100ms and 1m0s, inclusive`,
				`--pprof-bind-address="localhost:6060": must be a loopback address`,
				`metrics.bindAddress: Invalid value: "here"`,
				`--node-name="Node 1": `,
			},
		},
		"interval too long": {line{file: agentHead + "reportInterval: 61s"}, []string{`reportInterval: Invalid value: "1m1s"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := loadAgent(t, tc.line)
			checkProblems(t, err, tc.want)
		})
	}
}

// checkProblems checks that the error contains the wanted parts, one per problem.
func checkProblems(t *testing.T, err error, want []string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error\n%v\ndoes not contain\n%s", err, part)
		}
	}
	if lines := strings.Count(err.Error(), "\n") + 1; lines > len(want) {
		t.Errorf("%d problems, want %d:\n%v", lines, len(want), err)
	}
}
