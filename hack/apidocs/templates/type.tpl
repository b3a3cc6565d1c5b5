{{- define "type" -}}
{{- if markdownShouldRenderType . }}
### {{ .Name }}

{{ .Doc }}
{{ if .References }}
In:
{{- range $i, $r := .SortedReferences }}{{ if $i }},{{ end }} {{ markdownRenderTypeLink $r }}{{ end }}.
{{ end }}
{{- if eq .Name "ContainerProbeSpec" }}
{{- template "probe" . }}
{{- else if .Members }}
| field | type | meaning |
| --- | --- | --- |
{{- if .GVK }}
| `apiVersion` | string | `{{ .GVK.Group }}/{{ .GVK.Version }}` |
| `kind` | string | `{{ .GVK.Kind }}` |
{{- end }}
{{- range .Members }}
| `{{ .Name }}`{{ if index .Markers "optional" }} ?{{ end }} | {{ markdownRenderType .Type }} | {{ template "type_members" . }} |
{{- end }}
{{ end }}
{{- if .EnumValues }}
| value | meaning |
| --- | --- |
{{- range .EnumValues }}
| `{{ .Name }}` | {{ markdownRenderFieldDoc .Doc | trimSuffix "<br />" | replace "<br />" " " }} |
{{- end }}
{{ end }}
{{- end }}
{{- end -}}
