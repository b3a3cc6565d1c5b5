{{- define "gvList" -}}
# API reference

`make generate` generates this page from the Go types in `api/`. Each field has its meaning and, if
applicable, its unit, default and bounds. A `?` after the name of a field means that the field is
optional.
{{ range . }}
- {{ markdownRenderGVLink . }}
{{- end }}
{{ range . }}
{{ template "gvDetails" . }}
{{- end }}
{{- end -}}
