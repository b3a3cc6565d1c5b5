// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"regexp"
	"strings"
)

// collector matches the goroutines of the garbage collector, and its work in others.
const collector = `^runtime\.(gcBgMarkWorker|bgsweep|gcAssistAlloc|bgscavenge|gcStart)`

// categoriesOf returns the parts of a program's profile. The first match counts, so
// background work such as the garbage collector comes first, and what is in the stack of every
// request comes last.
func categoriesOf(program string) []Category {
	var parts [][2]string
	switch {
	case program == "API server":
		parts = [][2]string{
			{"garbage collection", collector},
			{"validation by schemas and CEL rules", `apiextensions-apiserver/pkg/apiserver/(validation|schema)|customResource(Strategy|Validator)|kube-openapi/pkg/validation|apis/core/validation`},
			{"admission policies", `admission/plugin/(policy|cel)`},
			{"managed fields", `managedfields|structured-merge-diff`},
			{"watch", `storage/cacher\.\(\*(watchCache|cacheWatcher)|\*Cacher\)\.(dispatch|processEvent)|\*WatchServer\)|watchEncoder|watchEmbedded|etcd3\.\(\*watch`},
			{"authentication and authorization", `pkg/authentication/|pkg/serviceaccount|go-jose|rbac|plugin/pkg/auth|authorization/union`},
			{"patch: decode, merge, encode", `\*(jsonPatcher|smpPatcher|applyPatcher)\)\.apply`},
			{"response", `responsewriters|transformResponse`},
			{"storage", `apiserver/pkg/storage/|etcd/client|etcd/api`},
			{"HTTP, TLS and request filters", `net/http|crypto/|golang\.org/x/net|internal/poll`},
			{"metrics and profile", `prometheus|pprof`},
		}
	case strings.Contains(program, "manager"):
		parts = [][2]string{
			{"garbage collection", collector},
			{"decide marks", `seamark/internal/(mark|view)\b`},
			{"compile plans", `seamark/internal/marking/plan\b`},
			{"receive and decode watch events", `client-go/(tools/(cache|watch)|rest/watch)|apimachinery/pkg/watch`},
			{"write", `seamark/internal/manager/apply|client-go/rest\.\(\*Request\)|net/http\.\(\*persistConn|http2`},
			{"queues and controllers", `controller-runtime|workqueue|seamark/internal/program/controllers`},
		}
	default:
		parts = [][2]string{
			{"garbage collection", collector},
			{"probes over HTTP", `seamark/internal/probing/http`},
			{"probes over TCP", `seamark/internal/probing/tcp`},
			{"probes with exec", `seamark/internal/probing/exec`},
			{"scheduling of probes", `seamark/internal/(worker|streak)\b`},
			{"write reports", `seamark/internal/(report|agent)\b.*[rR]eport|client-go/rest\.\(\*Request\)`},
			{"container runtime", `seamark/internal/agent/cri|google\.golang\.org/grpc`},
			{"network and system calls", `net/http|internal/poll|syscall`},
		}
	}
	parts = append(parts, [2]string{"Go scheduler", `^runtime\.(mcall|schedule|findRunnable|park_m|mstart|netpoll|futex)`})
	out := make([]Category, len(parts))
	for i, p := range parts {
		out[i] = Category{Name: p[0], Functions: regexp.MustCompile(p[1])}
	}
	return out
}
