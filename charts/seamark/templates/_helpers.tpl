{{/* Labels of all objects. */}}
{{- define "seamark.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Labels that select a component's pods. Takes the component's name. */}}
{{- define "seamark.selector" -}}
app.kubernetes.io/name: seamark
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/* The components with a Deployment, separated by spaces. */}}
{{- define "seamark.deployments" -}}
manager{{ if .Values.workloads.enabled }} workloads{{ end }}{{ if .Values.sidecarSets.enabled }} injector{{ end }}
{{- end }}

{{/* A component's image. Takes a dict of root and component. The injectors run seamark-workloads. */}}
{{- define "seamark.image" -}}
{{- $image := (index .root.Values (eq .component "injector" | ternary "workloads" .component)).image }}
{{- $name := printf "%s/%s" .root.Values.image.registry $image.repository }}
{{- if $image.digest }}
{{- printf "%s@%s" $name $image.digest }}
{{- else }}
{{- printf "%s:%s" $name (.root.Values.image.tag | default .root.Chart.AppVersion) }}
{{- end }}
{{- end }}

{{/* Go's soft memory limit: 90% of the container's memory limit, so that the garbage
collector works harder before the kernel kills the process. Empty if the user sets it. Takes
a component's values. */}}
{{- define "seamark.memoryLimit" -}}
{{- $limit := dig "limits" "memory" "" (.resources | default dict) | toString }}
{{- range .env }}
{{- if eq .name "GOMEMLIMIT" }}
{{- $limit = "" }}
{{- end }}
{{- end }}
{{- if regexMatch "^[0-9]+Mi$" $limit }}
{{- div (mul (trimSuffix "Mi" $limit | int64) 9) 10 }}MiB
{{- else if regexMatch "^[0-9]+Gi$" $limit }}
{{- div (mul (trimSuffix "Gi" $limit | int64) 9216) 10 }}MiB
{{- end }}
{{- end }}

{{/* "true" if pods on virtual nodes are supported, or empty. */}}
{{- define "seamark.serverless" -}}
{{- if dig "EnablePodProbeMarkerOnServerless" false (.Values.featureGates | default dict) }}true{{ end }}
{{- end }}

{{/* A component's configuration, or empty if it has no settings. Takes a dict of root,
component and kind. */}}
{{- define "seamark.config" -}}
{{- $config := deepCopy ((index .root.Values .component).config | default dict) }}
{{- if and (eq .component "manager") .root.Values.featureGates }}
{{- $_ := set $config "featureGates" .root.Values.featureGates }}
{{- end }}
{{- if has .component (list "manager" "workloads") }}
{{- $excluded := (index .root.Values .component).excludedNamespaces | default list }}
{{- if ne (toJson $excluded) `["kube-system"]` }}
{{- $_ := set $config "excludedNamespaces" $excluded }}
{{- end }}
{{- end }}
{{- if eq .component "manager" }}
{{- with include "seamark.certificates" .root.Values.serverless.webhook | fromYaml }}
{{- $_ := set $config "serverless" (dict "webhook" .) }}
{{- end }}
{{- end }}
{{- if eq .component "workloads" }}
{{- $controllers := $config.controllers | default dict }}
{{- range $name, $field := dict "cloneset" "cloneSet" "statefulset" "statefulSet" }}
{{- if not (has $name $.root.Values.workloads.controllers) }}
{{- $_ := set $controllers $field (dict "enabled" false) }}
{{- end }}
{{- end }}
{{- range $name, $field := dict "advancedcronjob" "advancedCronJob" "daemonset" "daemonSet" "broadcastjob" "broadcastJob" }}
{{- if has $name $.root.Values.workloads.controllers }}
{{- $_ := set $controllers $field (merge (dict "enabled" true) (get $controllers $field | default dict)) }}
{{- end }}
{{- end }}
{{- if has "imagepulljob" .root.Values.workloads.controllers }}
{{- $_ := set $controllers "imagePullJob" (merge (dict "enabled" true) ($controllers.imagePullJob | default dict)) }}
{{- end }}
{{- if .root.Values.sidecarSets.enabled }}
{{- $_ := set $controllers "sidecarSet" (merge (dict "enabled" true) ($controllers.sidecarSet | default dict)) }}
{{- end }}
{{- with $controllers }}
{{- $_ := set $config "controllers" . }}
{{- end }}
{{- end }}
{{- if eq .component "injector" }}
{{- with include "seamark.certificates" .root.Values.sidecarSets | fromYaml }}
{{- $_ := set $config "injector" (merge . ($config.injector | default dict)) }}
{{- end }}
{{- end }}
{{- if $config }}
{{- toYaml (merge (dict "apiVersion" "config.seamark.dev/v1alpha1" "kind" .kind) $config) }}
{{- end }}
{{- end }}

{{/* The configuration of the certificates of a webhook, or empty. Takes the values of the webhook. */}}
{{- define "seamark.certificates" -}}
{{- if ne .certificates "seamark" }}
certificates: {{ .certificates }}
{{- end }}
{{- if .clientCA }}
clientCAFile: /etc/seamark/client-ca.crt
{{- end }}
{{- end }}

{{/* The sets of seamark-workloads in whose namespaces the manager lets it write, separated by commas. Empty if an administrator does. */}}
{{- define "seamark.grants" -}}
{{- $grants := list }}
{{- if and .Values.workloads.enabled (not .Values.workloads.namespaces) }}
{{- range list "cloneset" "statefulset" "daemonset" "broadcastjob" "imagepulljob" }}
{{- if has . $.Values.workloads.controllers }}
{{- $grants = append $grants (printf "%ss" .) }}
{{- end }}
{{- end }}
{{- if .Values.sidecarSets.enabled }}
{{- $grants = append $grants "sidecarsets" }}
{{- end }}
{{- end }}
{{- join "," $grants }}
{{- end }}

{{/* The configurable fields of a component's pod spec. Takes a dict of root and component. */}}
{{- define "seamark.pod" -}}
{{- $values := index .root.Values .component }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- include "seamark.hookPod" . }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The configurable fields that the pods of hooks also have. */}}
{{- define "seamark.hookPod" -}}
{{- $values := index .root.Values .component }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The securityContext of all containers. */}}
{{- define "seamark.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The securityContext of pods with the manager's image. The user owns no files. */}}
{{- define "seamark.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* An object of a file in files/, in the release's namespace and with the release's labels. Policies
for authors get the trusted users. Takes a dict of root and object. */}}
{{- define "seamark.placed" -}}
{{- $object := .object }}
{{- if hasKey $object.metadata "namespace" }}
{{- $_ := set $object.metadata "namespace" .root.Release.Namespace }}
{{- end }}
{{- range $object.subjects }}
{{- $_ := set . "namespace" $.root.Release.Namespace }}
{{- end }}
{{- if eq $object.kind "ValidatingAdmissionPolicy" }}
{{- range dig "spec" "matchConditions" list $object }}
{{- if eq .name "not-exempt-user" }}
{{- $_ := set . "expression" (printf "!(request.userInfo.username in %s)" ($.root.Values.policies.guards.exemptUsers | default list | toJson)) }}
{{- end }}
{{- if eq .name "not-trusted" }}
{{- $_ := set . "expression" (printf "!(request.userInfo.username in %s)" ($.root.Values.policies.markerAuthor.trusted | default list | toJson)) }}
{{- end }}
{{- end }}
{{- end }}
{{- $labels := include "seamark.labels" .root | fromYaml }}
{{- $_ := set $object.metadata "labels" (merge $labels (default dict $object.metadata.labels)) }}
---
{{ toYaml $object }}
{{- end }}

{{/* What cert-manager issues to a Service, by an authority of its own that stays: clients that trust it trust each
renewed certificate. Takes a dict of root and name, which is that of the Service. */}}
{{- define "seamark.certManager" -}}
{{- $metadata := dict "namespace" .root.Release.Namespace "labels" (include "seamark.labels" .root | fromYaml) }}
{{- $authority := printf "%s-authority" .name }}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: {{ $authority }}
  {{- toYaml $metadata | nindent 2 }}
spec:
  selfSigned: {}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ $authority }}
  {{- toYaml $metadata | nindent 2 }}
spec:
  secretName: {{ $authority }}
  isCA: true
  commonName: {{ $authority }}
  # Ten years. The key stays when the certificate is renewed.
  duration: 87600h
  privateKey:
    algorithm: ECDSA
    rotationPolicy: Never
  issuerRef:
    kind: Issuer
    name: {{ $authority }}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: {{ .name }}
  {{- toYaml $metadata | nindent 2 }}
spec:
  ca:
    secretName: {{ $authority }}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ .name }}
  {{- toYaml $metadata | nindent 2 }}
spec:
  secretName: {{ .name }}-certificate
  dnsNames:
    - {{ .name }}.{{ .root.Release.Namespace }}.svc
  privateKey:
    rotationPolicy: Always
  issuerRef:
    kind: Issuer
    name: {{ .name }}
{{- end }}
