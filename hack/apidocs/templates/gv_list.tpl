{{- define "gvList" -}}
# API reference

Generated from the Go types below `api/`; `make generate` writes it. Every field says what it means, and where it has
them its unit, default and bounds. A `?` behind a field's name: it may be left out.
{{ range . }}
- {{ markdownRenderGVLink . }}
{{- end }}
{{ range . }}
{{ template "gvDetails" . }}
{{- end }}
{{- end -}}
