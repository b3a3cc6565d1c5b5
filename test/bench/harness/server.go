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
	// peerAccount is that of Kubernetes' own controllers, with all rights.
	peerAccount = "controller-manager"
)

// Server is an API server with etcd, with Seamark's CRDs, rights and policies installed.
type Server struct {
	*env.Env
	run *Run
	raw rest.Interface
}

// Server starts an API server that stops when the measure ends.
func (r *Run) Server(ctx context.Context, options ...env.Option) (*Server, error) {
	e, err := env.New(options...)
	if err != nil {
		return nil, err
	}
	r.OnEnd(e.Stop)
	clientset, err := kubernetes.NewForConfig(e.Config)
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	s := &Server{Env: e, run: r, raw: clientset.RESTClient()}
	for _, account := range []string{managerAccount, agentAccount} {
		// This creates the namespace and the account.
		if _, err := e.Token(ctx, env.SystemNamespace, account, nil); err != nil {
			return nil, err
		}
	}
	for _, folder := range []string{"config/rbac", "config/policies"} {
		if err := s.install(ctx, folder); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// install creates the objects of a folder's manifests.
func (s *Server) install(ctx context.Context, folder string) error {
	objects, err := env.ReadManifests(folder)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := client.IgnoreAlreadyExists(s.Client.Create(ctx, o)); err != nil {
			return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// account returns a configuration with a token of a service account that has the rights of a
// folder's manifests, or all rights without a folder.
func (s *Server) account(ctx context.Context, name, folder string) (*rest.Config, error) {
	config, err := s.Token(ctx, env.SystemNamespace, name, nil)
	if err != nil {
		return nil, err
	}
	if folder != "" {
		return config, s.install(ctx, folder)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: env.SystemNamespace, Name: name}},
	}
	if err := client.IgnoreAlreadyExists(s.Client.Create(ctx, binding)); err != nil {
		return nil, fmt.Errorf("bind %s to cluster-admin: %w", name, err)
	}
	return config, nil
}

// ManagerConfig returns a configuration with the manager's service account.
func (s *Server) ManagerConfig(ctx context.Context) (*rest.Config, error) {
	return s.Token(ctx, env.SystemNamespace, managerAccount, nil)
}

// AgentConfig returns a configuration of the agent on a node: its token is bound to a pod on
// the node, as a kubelet requests it. The Node must exist.
func (s *Server) AgentConfig(ctx context.Context, node string) (*rest.Config, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, GenerateName: "agent-"},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: agentAccount,
			Containers: []corev1.Container{{Name: "agent", Image: "seamark-agent"}},
		},
	}
	if err := s.Client.Create(ctx, pod); err != nil {
		return nil, fmt.Errorf("create the agent's pod on %s: %w", node, err)
	}
	return s.Token(ctx, env.SystemNamespace, agentAccount, &authenticationv1.BoundObjectReference{
		APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
	})
}

// Counters are totals since the start of the API server and etcd.
type Counters struct {
	// At is the time of the reading.
	At time.Time
	// APIServer and Etcd are processor times, from process_cpu_seconds_total.
	APIServer, Etcd time.Duration
	// WAL is the number of bytes that etcd has written to its write-ahead log.
	WAL float64
	// Requests are the requests to the API server.
	Requests env.Requests
}

// Since returns the difference to an earlier reading. At becomes the zero time plus the
// duration.
func (c Counters) Since(before Counters) Counters {
	return Counters{
		At:        time.Time{}.Add(c.At.Sub(before.At)),
		APIServer: c.APIServer - before.APIServer, Etcd: c.Etcd - before.Etcd, WAL: c.WAL - before.WAL,
		Requests: c.Requests.Since(before.Requests),
	}
}

// Duration returns the length of the period of a difference.
func (c Counters) Duration() time.Duration { return c.At.Sub(time.Time{}) }

// Counters reads the counters. A reading costs the API server some milliseconds, which the
// difference of two readings includes: subtract an idle period of the same length.
func (s *Server) Counters(ctx context.Context) (Counters, error) {
	text, err := s.raw.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return Counters{}, fmt.Errorf("read the API server's metrics: %w", err)
	}
	server, err := parse(text)
	if err != nil {
		return Counters{}, err
	}
	if text, err = get(ctx, s.EtcdURL()+"/metrics"); err != nil {
		return Counters{}, err
	}
	etcd, err := parse(text)
	if err != nil {
		return Counters{}, err
	}
	return Counters{
		At:        time.Now(),
		APIServer: seconds(total(server, "process_cpu_seconds_total")),
		Etcd:      seconds(total(etcd, "process_cpu_seconds_total")),
		WAL:       total(etcd, "etcd_disk_wal_write_bytes_total"),
		Requests:  env.CountRequests(server),
	}, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func parse(text []byte) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse metrics: %w", err)
	}
	return families, nil
}

// total returns the sum of a counter or gauge over its labels.
func total(families map[string]*dto.MetricFamily, name string) float64 {
	sum := 0.0
	for _, m := range families[name].GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return sum
}

// get returns the body of the answer to a request.
func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
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
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("request %s: %s", url, response.Status)
	}
	return body, nil
}
