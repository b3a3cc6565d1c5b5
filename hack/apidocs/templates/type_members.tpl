{{- define "type_members" -}}
{{- if eq .Name "metadata" -}}
The standard object metadata.
{{- else -}}
{{ markdownRenderFieldDoc .Doc | trimSuffix "<br />" | replace "<br />" " " }}
{{- end -}}
{{- end -}}
