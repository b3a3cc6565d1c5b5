// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"regexp"
	"strings"
)

// categoriesOf returns the parts of a program's profile. The first match counts, so background
// work such as the garbage collector comes first.
func categoriesOf(program string) []Category {
	var parts [][2]string
	switch {
	case program == "API server":
		parts = [][2]string{
			{"garbage collection", `^runtime\.(gcBgMarkWorker|bgsweep|gcAssist|bgscavenge|gcStart)`},
			{"admission policies (CEL)", `admission/plugin/policy|google/cel-go`},
			{"validation by schema and CEL", `apiextensions-apiserver/pkg/(apiserver/(validation|schema)|registry)|kube-openapi/pkg/validation`},
			{"managed fields", `managedfields|structured-merge-diff`},
			{"watch events", `watchCache|cacheWatcher|Cacher|handlers\.\(\*WatchServer\)|watchEmbeddedEncoder|storage/etcd3\.\(\*watch`},
			{"authentication and authorization", `authenticat|authoriz|go-jose`},
			{"storage", `apiserver/pkg/storage|etcd/client`},
			{"decode and encode requests", `runtime/serializer|encoding/json|json-iterator|sigs\.k8s\.io/json|evanphx/json-patch|protobuf`},
			{"HTTP and TLS", `net/http|crypto/|golang\.org/x/net/http2|internal/poll`},
			{"audit, priority and fairness, metrics", `flowcontrol|audit|component-base/metrics|prometheus`},
		}
	case strings.Contains(program, "manager"):
		parts = [][2]string{
			{"garbage collection", `^runtime\.(gcBgMarkWorker|bgsweep|gcAssist|bgscavenge|gcStart)`},
			{"decide marks", `seamark/internal/(mark|view)\b`},
			{"compile plans", `seamark/internal/plan\b`},
			{"receive and decode watch events", `client-go/(tools/(cache|watch)|rest/watch)|apimachinery/pkg/watch`},
			{"write", `seamark/internal/apply|client-go/rest\.\(\*Request\)|net/http\.\(\*persistConn|http2`},
			{"queues and controllers", `controller-runtime|workqueue|seamark/internal/controller`},
		}
	default:
		parts = [][2]string{
			{"garbage collection", `^runtime\.(gcBgMarkWorker|bgsweep|gcAssist|bgscavenge|gcStart)`},
			{"probes over HTTP", `seamark/internal/probe/http`},
			{"probes over TCP", `seamark/internal/probe/tcp`},
			{"probes with exec", `seamark/internal/probe/exec`},
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
