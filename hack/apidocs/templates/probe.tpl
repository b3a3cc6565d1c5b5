{{- /* The fields are those of core/v1. What they mean here differs from what they mean there. */ -}}
{{- define "probe" }}
[How Seamark judges](judging.md#the-fields) says all of them in full.

| field | type | meaning |
| --- | --- | --- |
| `exec` ? | ExecAction | runs `command` in the container, without a shell |
| `httpGet` ? | HTTPGetAction | asks the pod's address: `port`, a number or a name; `path`, default `/`; `scheme`, `HTTP` by default, or `HTTPS`; `httpHeaders`, at most 16. `host` is refused |
| `tcpSocket` ? | TCPSocketAction | connects to the pod's address at `port`, a number or a name. `host` is refused |
| `grpc` ? | GRPCAction | asks the health `service` at `port`, a number |
| `initialDelaySeconds` ? | integer | seconds from the start of the container to the first run, at least 0, default 0 |
| `periodSeconds` ? | integer | seconds from the start of one run to that of the next, at least 1, default 10 |
| `timeoutSeconds` ? | integer | seconds that one run may take, at least 1, default 1 |
| `successThreshold` ? | integer | successes in a row that count, at least 1, default 1 |
| `failureThreshold` ? | integer | failures in a row that count, at least 1, default 3 |
| `terminationGracePeriodSeconds` ? | integer | has no effect: a marker's probe stops nothing |
{{ end -}}
