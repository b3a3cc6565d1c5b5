{{- define "type_members" -}}
{{- if eq .Name "metadata" -}}
The standard object metadata.
{{- else -}}
{{ markdownRenderFieldDoc .Doc | trimSuffix "<br />" | replace "<br />" " " }}
{{- if and .Default (ne (print .Default) "{  }") }} Default `{{ .Default }}`.{{ end }}
{{- end -}}
{{- end -}}
