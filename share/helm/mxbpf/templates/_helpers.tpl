{{/* The name of all objects: that of the release, which says what it is. */}}
{{- define "mxbpf.name" -}}
{{ if contains "mxbpf" .Release.Name }}{{ .Release.Name }}{{ else }}{{ printf "%s-mxbpf" .Release.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "mxbpf.selector" -}}
app.kubernetes.io/name: mxbpf
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "mxbpf.labels" -}}
{{ include "mxbpf.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "mxbpf.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
