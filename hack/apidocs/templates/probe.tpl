{{- /* The fields are those of core/v1, with other bounds and defaults. */ -}}
{{- define "probe" }}
See [How probes are evaluated](judging.md#the-fields) for details.

| field | type | meaning |
| --- | --- | --- |
| `exec` ? | ExecAction | runs `command` in the container, without a shell |
| `httpGet` ? | HTTPGetAction | sends a GET request to the pod's address: `port`, a number or a name; `path`, default `/`; `scheme`, `HTTP` by default, or `HTTPS`; `httpHeaders`, at most 16; `protocol`, `HTTP1` by default, or `HTTP2` for HTTP/2 without TLS. `host` is rejected |
| `tcpSocket` ? | TCPSocketAction | connects to the pod's address at `port`, a number or a name. `host` is rejected |
| `grpc` ? | GRPCAction | calls the health service for `service` at `port`, a number; `mode`, `Plaintext` by default, or `TLS` |
| `initialDelaySeconds` ? | integer | seconds from the start of the container to the first run, at least 0, default 0 |
| `periodSeconds` ? | integer | seconds from the start of one run to that of the next, at least 1, default 10 |
| `timeoutSeconds` ? | integer | time limit of one run in seconds, 1 to 300, default 1 |
| `periodMilliseconds` ? | integer | overrides `periodSeconds`: at least 100, or 500 for exec. Added by Seamark |
| `timeoutMilliseconds` ? | integer | overrides `timeoutSeconds`: at least 100, or 500 for exec, and at most 300000. Added by Seamark |
| `successThreshold` ? | integer | number of successes in a row until the state is Succeeded, at least 1, default 1 |
| `failureThreshold` ? | integer | number of failures in a row until the state is Failed, at least 1, default 3 |
| `terminationGracePeriodSeconds` ? | integer | is rejected: probes of markers do not stop containers |
{{ end -}}
