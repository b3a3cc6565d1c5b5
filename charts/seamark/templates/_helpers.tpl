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
{{ .root.Values.image.registry }}/seamark-{{ .component }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{/* What no container of Seamark needs. */}}
{{- define "seamark.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
