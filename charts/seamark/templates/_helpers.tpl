{{/* Labels of the objects themselves. */}}
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

{{/* A component's image. Takes a dict of root and component. */}}
{{- define "seamark.image" -}}
{{- $image := (index .root.Values .component).image }}
{{- $name := printf "%s/%s" .root.Values.image.registry $image.repository }}
{{- if $image.digest }}
{{- printf "%s@%s" $name $image.digest }}
{{- else }}
{{- printf "%s:%s" $name (.root.Values.image.tag | default .root.Chart.AppVersion) }}
{{- end }}
{{- end }}

{{/* Go's soft memory limit: nine tenths of the container's, so that the collector works
harder before the kernel ends the program. Nothing where the user sets it. Takes a
component's values. */}}
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

{{/* Whether providers of virtual kubelets probe, or nothing. */}}
{{- define "seamark.serverless" -}}
{{- if dig "EnablePodProbeMarkerOnServerless" false (.Values.featureGates | default dict) }}true{{ end }}
{{- end }}

{{/* A component's configuration, or nothing where all is default. Takes a dict of root,
component and kind. */}}
{{- define "seamark.config" -}}
{{- $config := deepCopy ((index .root.Values .component).config | default dict) }}
{{- if and (eq .component "manager") .root.Values.featureGates }}
{{- $_ := set $config "featureGates" .root.Values.featureGates }}
{{- end }}
{{- if and (eq .component "manager") (ne .root.Values.serverless.webhook.certificates "seamark") }}
{{- $_ := set $config "serverless" (dict "webhook" (dict "certificates" .root.Values.serverless.webhook.certificates)) }}
{{- end }}
{{- if $config }}
{{- toYaml (merge (dict "apiVersion" "config.seamark.dev/v1alpha1" "kind" .kind) $config) }}
{{- end }}
{{- end }}

{{/* Settings of a component's pods that users choose. Takes a dict of root and component. */}}
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

{{/* Those of them that the pods of hooks have as well. */}}
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

{{/* What no container of Seamark needs. */}}
{{- define "seamark.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The user of the manager's image, who owns nothing. */}}
{{- define "seamark.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}
