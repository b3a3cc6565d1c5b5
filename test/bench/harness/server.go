// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/integration/env"
)

// The service accounts that config/ gives the programs.
const (
	managerAccount = "seamark-manager"
	agentAccount   = "seamark-agent"
	// workloadsAccount exists in measures of workloads only.
	workloadsAccount = "seamark-workloads"
	// injectorAccount exists in measures of SidecarSets only.
	injectorAccount = "seamark-injector"
	// peerAccount is that of Kubernetes' own controllers, with all rights.
	peerAccount = "controller-manager"
)

// Server is an API server with etcd, with Seamark's CRDs, rights and policies installed.
type Server struct {
	*env.Env
	b *Bench
	// Raw has all rights.
	Raw rest.Interface
}

// Server starts an API server that stops when the measure, or the part of it, ends.
func (b *Bench) Server(options ...env.Option) *Server {
	b.Helper()
	e := env.Start(b.T, options...)
	clientset, err := kubernetes.NewForConfig(e.Config)
	b.Must(err)
	s := &Server{Env: e, b: b, Raw: clientset.RESTClient()}
	for _, account := range []string{managerAccount, agentAccount} {
		// This creates the namespace and the account.
		e.ServiceAccount(b.T, env.SystemNamespace, account, nil)
	}
	s.install("config/rbac", "config/policies")
	return s
}

// Bare starts an API server without Seamark: no CRDs, rights or policies.
func (b *Bench) Bare() *Server {
	b.Helper()
	e := env.Start(b.T, env.NoCRDs())
	clientset, err := kubernetes.NewForConfig(e.Config)
	b.Must(err)
	return &Server{Env: e, b: b, Raw: clientset.RESTClient()}
}

// InstallAll installs the rights and policies of all programs and kinds, and the webhook configurations of SidecarSets. No
// program runs.
func (s *Server) InstallAll() {
	s.b.Helper()
	s.ServiceAccount(s.b.T, env.SystemNamespace, workloadsAccount, nil)
	s.install(append(env.WorkloadsRights(),
		"config/cronjobs/rbac.yaml", "config/cronjobs/policy.yaml", "config/daemonsets/rbac.yaml", "config/broadcastjobs/rbac.yaml",
		"config/imagepulls/rbac.yaml", "config/imagepulls/author.yaml", "config/sidecarsets/rbac.yaml", "config/sidecarsets/author.yaml",
		"config/sidecarsets/injector-rbac.yaml", "config/sidecarsets/webhooks.yaml")...)
}

// install creates the objects of manifests. The manager may plan pods with loopback addresses, where the servers of a measure
// listen.
func (s *Server) install(paths ...string) {
	s.b.Helper()
	for _, path := range paths {
		objects, err := env.ReadManifests(path)
		s.b.Must(err)
		for _, object := range objects {
			s.b.Must(setVariable(object, "foreign", "[]"))
		}
		s.Apply(s.b.T, objects...)
	}
}

// permitURL lets the policy of webhook configurations permit the address of the injector.
func (s *Server) permitURL(url string) {
	s.b.Helper()
	objects, err := env.ReadManifests("config/policies/webhooks.yaml")
	s.b.Must(err)
	for _, object := range objects {
		s.b.Must(setVariable(object, "injectorURL", "'"+url+"'"))
		s.b.Must(s.Client.Apply(s.b.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("bench"), client.ForceOwnership))
	}
}

// setVariable replaces the expression of a variable of a policy, if it has one of the name.
func setVariable(object *unstructured.Unstructured, name, expression string) error {
	variables, found, err := unstructured.NestedSlice(object.Object, "spec", "variables")
	if err != nil || !found {
		return err //nolint:wrapcheck // It is that of a manifest of this repository.
	}
	for _, each := range variables {
		if variable, ok := each.(map[string]any); ok && variable["name"] == name {
			variable["expression"] = expression
		}
	}
	return unstructured.SetNestedSlice(object.Object, variables, "spec", "variables") //nolint:wrapcheck // It cannot fail.
}

// ManagerConfig returns a configuration with the manager's service account.
func (s *Server) ManagerConfig() *rest.Config {
	return s.ServiceAccount(s.b.T, env.SystemNamespace, managerAccount, nil)
}

// AgentConfig returns a configuration of the agent on a node: its token is bound to a pod on
// the node, as a kubelet requests it. The Node must exist.
func (s *Server) AgentConfig(node string) *rest.Config {
	s.b.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, GenerateName: "agent-"},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: agentAccount,
			Containers: []corev1.Container{{Name: "agent", Image: "seamark-agent"}},
		},
	}
	s.b.Must(s.Client.Create(s.b.Context(), pod))
	return s.ServiceAccount(s.b.T, env.SystemNamespace, agentAccount, &authenticationv1.BoundObjectReference{
		APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
	})
}

// peerConfig returns a configuration of Kubernetes' own controllers.
func (s *Server) peerConfig() *rest.Config {
	s.b.Helper()
	s.b.Must(client.IgnoreAlreadyExists(s.Client.Create(s.b.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: peerAccount},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: env.SystemNamespace, Name: peerAccount}},
	})))
	return s.ServiceAccount(s.b.T, env.SystemNamespace, peerAccount, nil)
}

// Counters are what the API server and etcd have done, since their start or in a period.
type Counters struct {
	// Took is the length of the period.
	Took time.Duration
	// CPU is the API server's processor time, from process_cpu_seconds_total.
	CPU time.Duration
	// WAL is the number of bytes that etcd has written to its write-ahead log.
	WAL float64
	// Requests are the requests to the API server.
	Requests env.Requests
}

// Counted returns what the API server and etcd do during work. This includes some milliseconds for
// a reading of the counters: subtract those of a period without work.
func (s *Server) Counted(work func()) Counters {
	s.b.Helper()
	before, start := s.counters(), time.Now()
	work()
	after := s.counters()
	return Counters{
		Took: time.Since(start), CPU: after.CPU - before.CPU, WAL: after.WAL - before.WAL,
		Requests: after.Requests.Since(before.Requests),
	}
}

// Without returns the counters less those of a period without work, in proportion to the time.
func (c Counters) Without(idle Counters) Counters {
	share := c.Took.Seconds() / idle.Took.Seconds()
	c.CPU -= time.Duration(share * float64(idle.CPU))
	c.WAL -= share * idle.WAL
	return c
}

// counters reads the counters since the start.
func (s *Server) counters() Counters {
	s.b.Helper()
	text, err := s.Raw.Get().AbsPath("/metrics").DoRaw(s.b.Context())
	s.b.Must(err)
	server, err := parse(text)
	s.b.Must(err)
	etcd, err := families(s.b.Context(), s.EtcdURL()+"/metrics")
	s.b.Must(err)
	return Counters{
		CPU: seconds(total(server, "process_cpu_seconds_total")),
		WAL: total(etcd, "etcd_disk_wal_write_bytes_total"), Requests: env.CountRequests(server),
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func families(ctx context.Context, url string) (map[string]*dto.MetricFamily, error) {
	text, err := read(ctx, url)
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// read returns the body of the response.
func read(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", url, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", url, err)
	}
	return body, nil
}

func parse(text []byte) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse metrics: %w", err)
	}
	return all, nil
}

// total returns the sum of a counter or gauge over its labels.
func total(all map[string]*dto.MetricFamily, name string) float64 {
	sum := 0.0
	for _, m := range all[name].GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return sum
}

// Sum returns the sum of a counter or gauge over the series in which the label has the value.
func Sum(all map[string]*dto.MetricFamily, name, label, value string) float64 {
	sum := 0.0
	for _, m := range all[name].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == label && l.GetValue() == value {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
