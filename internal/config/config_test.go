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

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
)

const (
	managerHead = "apiVersion: config.seamark.dev/v1alpha1\nkind: ManagerConfiguration\n"
	agentHead   = "apiVersion: config.seamark.dev/v1alpha1\nkind: AgentConfiguration\n"
)

// line is what a test gives a program: the content of the file, or none, and flags.
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
		if err := os.WriteFile(path, []byte(l.file), 0o600); err != nil {
			t.Fatal(err)
		}
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
		"nothing said":             {want: func(*v1alpha1.ManagerConfiguration) {}},
		"a file that says nothing": {line{file: managerHead}, func(*v1alpha1.ManagerConfiguration) {}},
		"a file in JSON": {
			line{file: `{"apiVersion":"config.seamark.dev/v1alpha1","kind":"ManagerConfiguration","logging":{"verbosity":2}}`},
			func(c *v1alpha1.ManagerConfiguration) { c.Logging.Verbosity = 2 },
		},
		"a file over defaults": {
			line{file: "# moved over\n---\n" + managerHead + `
leaderElection: {leaderElect: false, resourceNamespace: kube-system}
pprof: {bindAddress: "127.0.0.1:6060"}
controllers: {podMark: {concurrency: 8}}
probeDefaults: {periodSeconds: 1, failureThreshold: 1}
featureGates: {EnablePodProbeMarkerOnServerless: true}
serverless: {webhook: {certificates: certManager}}
`},
			func(c *v1alpha1.ManagerConfiguration) {
				c.LeaderElection = v1alpha1.LeaderElection{LeaderElect: new(false), ResourceNamespace: "kube-system"}
				c.Pprof.BindAddress = "127.0.0.1:6060"
				c.Controllers.PodMark.Concurrency = 8
				c.ProbeDefaults.PeriodSeconds, c.ProbeDefaults.FailureThreshold = 1, 1
				c.FeatureGates[ServerlessGate] = true
				c.Serverless.Webhook.Certificates = v1alpha1.CertificatesByCertManager
			},
		},
		"flags over the file": {
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
		"a flag that repeats the default wins too": {
			line{file: managerHead + "metrics: {bindAddress: \":1\"}", args: []string{"--metrics-bind-address=:8080"}},
			func(*v1alpha1.ManagerConfiguration) {},
		},
		"gates of the file and of flags, each for itself": {
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
		"gates by stage and by name": {
			line{file: managerHead + "featureGates: {AllBeta: false, PodProbeMarkerGate: true}"},
			func(c *v1alpha1.ManagerConfiguration) { c.FeatureGates["AllBeta"] = false },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := loadManager(t, tc.line)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(managerDefaults(tc.want), got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamespaceWithoutPod(t *testing.T) {
	set := newSet()
	c, err := NewManager(set, "testdata/none").Load()
	if err != nil {
		t.Fatal(err)
	}
	if got := c.LeaderElection.ResourceNamespace; got != v1alpha1.DefaultNamespace {
		t.Errorf("namespace %q", got)
	}
}

func TestAgent(t *testing.T) {
	cases := map[string]struct {
		line line
		want func(*v1alpha1.AgentConfiguration)
	}{
		"nothing said": {want: func(*v1alpha1.AgentConfiguration) {}},
		"a file over defaults": {
			line{file: agentHead + "criEndpoint: /run/x.sock\nexecConcurrency: 4\nreportInterval: 1m\nlogging: {format: json}"},
			func(c *v1alpha1.AgentConfiguration) {
				c.CRIEndpoint, c.ExecConcurrency = "/run/x.sock", 4
				c.ReportInterval.Duration, c.Logging.Format = time.Minute, v1alpha1.LogJSON
			},
		},
		"flags over the file": {
			line{
				file: agentHead + "criEndpoint: /run/x.sock\nexecConcurrency: 4\npprof: {bindAddress: \"127.0.0.1:1\"}",
				args: []string{"--cri-endpoint=unix:///run/y.sock", "--exec-concurrency=5", "--pprof-bind-address=[::1]:2", "--v=4"},
			},
			func(c *v1alpha1.AgentConfiguration) {
				c.CRIEndpoint, c.ExecConcurrency = "unix:///run/y.sock", 5
				c.Pprof.BindAddress, c.Logging.Verbosity = "[::1]:2", 4
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := loadAgent(t, tc.line)
			if err != nil {
				t.Fatal(err)
			}
			want := &v1alpha1.AgentConfiguration{}
			v1alpha1.SetAgentDefaults(want)
			tc.want(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

func TestManagerRefusals(t *testing.T) {
	cases := map[string]struct {
		line line
		want []string
	}{
		"an unknown field": {
			line{file: managerHead + "probeDefaults: {perodSeconds: 1}\nlogs: {}"},
			[]string{`strict decoding error: unknown field "logs", unknown field "probeDefaults.perodSeconds"`},
		},
		"a field twice": {
			line{file: managerHead + "logging:\n  verbosity: 1\n  verbosity: 2"},
			[]string{"strict decoding error", `line 5: key "verbosity" already set in map`},
		},
		"a field twice, in JSON": {
			line{file: `{"apiVersion":"config.seamark.dev/v1alpha1","kind":"ManagerConfiguration","logging":{"verbosity":1,"verbosity":2}}`},
			[]string{`duplicate field "logging.verbosity"`},
		},
		"a value of another type": {
			line{file: managerHead + "probeDefaults: {periodSeconds: often}"},
			[]string{"probeDefaults.periodSeconds of type int32"},
		},
		"another version": {
			line{file: "apiVersion: config.seamark.dev/v1\nkind: ManagerConfiguration"},
			[]string{`apiVersion "config.seamark.dev/v1", kind "ManagerConfiguration": want apiVersion "config.seamark.dev/v1alpha1", kind "ManagerConfiguration"`},
		},
		"another kind": {
			line{file: agentHead},
			[]string{`kind "AgentConfiguration": want apiVersion "config.seamark.dev/v1alpha1", kind "ManagerConfiguration"`},
		},
		"no kind":       {line{file: "logging: {}"}, []string{`apiVersion "", kind "": want apiVersion`}},
		"an empty file": {line{file: "# nothing"}, []string{"0 documents, want 1"}},
		"two documents": {line{file: managerHead + "---\n" + managerHead}, []string{"2 documents, want 1"}},
		"no such file":  {line{args: []string{"--config=/nowhere"}}, []string{`--config="/nowhere"`, "no such file"}},
		"not even YAML": {line{file: "\tx"}, []string{"--config=", "yaml: "}},
		"an unknown gate": {
			line{file: managerHead + "featureGates: {Everything: true}"},
			[]string{`featureGates[Everything]: Unsupported value: "Everything": supported values: "AllAlpha", "AllBeta", "EnablePodProbeMarkerOnServerless", "PodProbeMarkerGate"`},
		},
		"an unknown gate, by flag": {
			line{args: []string{"--feature-gates=Everything=true"}},
			[]string{`"--feature-gates"`, `unknown gate "Everything", want one of AllAlpha, AllBeta, EnablePodProbeMarkerOnServerless, PodProbeMarkerGate`},
		},
		"a gate half open": {
			line{args: []string{"--feature-gates=PodProbeMarkerGate=half"}},
			[]string{`PodProbeMarkerGate="half": want true or false`},
		},
		"all that is wrong at once": {
			line{
				file: managerHead + `
metrics: {bindAddress: here}
health: {bindAddress: ":65536"}
pprof: {bindAddress: ":6060"}
logging: {verbosity: 11, format: xml}
leaderElection: {resourceNamespace: My NS}
controllers: {nodeProbe: {concurrency: -1}, podMark: {concurrency: 257}, marker: {concurrency: -1}, serverless: {concurrency: -1}}
probeDefaults: {initialDelaySeconds: -1, periodSeconds: -1, timeoutSeconds: -1, successThreshold: -1, failureThreshold: -1}
serverless: {webhook: {port: 65536, certificates: mine, certificateDirectory: here, secretName: A, serviceName: A, configurationName: A}}
`,
				args: []string{"--metrics-bind-address=", "--health-probe-bind-address=8081"},
			},
			[]string{
				`--metrics-bind-address="": want host:port, :port or 0`,
				`--health-probe-bind-address="8081": want host:port, :port or 0`,
				`pprof.bindAddress: Invalid value: ":6060": want a loopback address and a port, like 127.0.0.1:6060 or [::1]:6060, or 0`,
				`logging.verbosity: Invalid value: 11: want 0 to 10`,
				`logging.format: Unsupported value: "xml": supported values: "text", "json"`,
				`leaderElection.resourceNamespace: Invalid value: "My NS"`,
				`controllers.nodeProbe.concurrency: Invalid value: -1: want 1 to 256`,
				`controllers.podMark.concurrency: Invalid value: 257: want 1 to 256`,
				`controllers.marker.concurrency: `, `controllers.serverless.concurrency: `,
				`probeDefaults.initialDelaySeconds: Invalid value: -1: want at least 0`,
				`probeDefaults.periodSeconds: Invalid value: -1: want at least 1`,
				`probeDefaults.timeoutSeconds: `, `probeDefaults.successThreshold: `, `probeDefaults.failureThreshold: `,
				`serverless.webhook.port: Invalid value: 65536: want 1 to 65535`,
				`serverless.webhook.certificates: Unsupported value: "mine": supported values: "seamark", "certManager"`,
				`serverless.webhook.certificateDirectory: Invalid value: "here": want an absolute path`,
				`serverless.webhook.secretName: `, `serverless.webhook.serviceName: `, `serverless.webhook.configurationName: `,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := loadManager(t, tc.line)
			expect(t, err, tc.want)
		})
	}
}

func TestAgentRefusals(t *testing.T) {
	cases := map[string]struct {
		line line
		want []string
	}{
		"the manager's file": {line{file: managerHead}, []string{`want apiVersion "config.seamark.dev/v1alpha1", kind "AgentConfiguration"`}},
		"no duration":        {line{file: agentHead + "reportInterval: soon"}, []string{"soon"}},
		"all at once, and the node's name with it": {
			line{
				file: agentHead + "criEndpoint: tcp://x\nreportInterval: 99ms\nmetrics: {bindAddress: here}",
				args: []string{"--exec-concurrency=1025", "--pprof-bind-address=localhost:6060", "--node-name=Node 1"},
			},
			[]string{
				`criEndpoint: Invalid value: "tcp://x": want unix:///path or the absolute path of a socket`,
				`--exec-concurrency=1025: want 1 to 1024`,
				`reportInterval: Invalid value: "99ms": want 100ms to 1m`,
				`--pprof-bind-address="localhost:6060": want a loopback address`,
				`metrics.bindAddress: Invalid value: "here"`,
				`--node-name="Node 1": `,
			},
		},
		"a long interval": {line{file: agentHead + "reportInterval: 61s"}, []string{`reportInterval: Invalid value: "1m1s"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := loadAgent(t, tc.line)
			expect(t, err, tc.want)
		})
	}
}

// expect checks that the error says all that is wanted, and no more problems than that.
func expect(t *testing.T, err error, want []string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error\n%v\ndoes not say\n%s", err, part)
		}
	}
	if lines := strings.Count(err.Error(), "\n") + 1; lines > len(want) {
		t.Errorf("%d problems, want %d:\n%v", lines, len(want), err)
	}
}
