{{- define "gvDetails" -}}
{{- $gv := . -}}
## {{ .GroupVersionString }}

{{ .Doc }}
{{ if .Kinds }}
Kinds:
{{- range $i, $k := .SortedKinds }}{{ if $i }},{{ end }} {{ $gv.TypeForKind $k | markdownRenderTypeLink }}{{ end }}.
{{ end }}
{{- range .SortedTypes }}
{{- template "type" . }}
{{- end }}
{{- end -}}
