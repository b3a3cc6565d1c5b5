{{/* The Deployment of a program, its configuration and its PodDisruptionBudget.
Takes a dict of root, component and kind of the configuration. */}}
{{- define "seamark.deployment" -}}
{{- $values := index .root.Values .component }}
{{- $name := printf "seamark-%s" .component }}
{{- $config := include "seamark.config" . }}
{{- $injector := eq .component "injector" }}
{{- $webhook := or $injector (and (eq .component "manager") (include "seamark.serverless" .root)) }}
{{- $certificates := $injector | ternary .root.Values.sidecarSets.certificates .root.Values.serverless.webhook.certificates }}
{{- $certManager := and $webhook (eq $certificates "certManager") }}
{{- $volume := $injector | ternary "injector" "webhook" }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "seamark.selector" .component | nindent 4 }}
    {{- include "seamark.labels" .root | nindent 4 }}
spec:
  replicas: {{ $values.replicas }}
  selector:
    matchLabels:
      {{- include "seamark.selector" .component | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "seamark.selector" .component | nindent 8 }}
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- if or $config $values.podAnnotations }}
      annotations:
        {{- if $config }}
        # A changed configuration restarts the pods.
        seamark.dev/config-digest: {{ sha256sum $config }}
        {{- end }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
    spec:
      serviceAccountName: {{ $name }}
      {{- if $injector }}
      # It serves for 15 s after it has been told to end.
      terminationGracePeriodSeconds: 30
      {{- else }}
      terminationGracePeriodSeconds: 10
      {{- end }}
      {{- if $values.hostNetwork }}
      hostNetwork: true
      dnsPolicy: ClusterFirstWithHostNet
      {{- end }}
      {{- include "seamark.pod" . | trim | nindent 6 }}
      # The program only connects to the API server. It needs no user, file or device of the node.
      securityContext:
        {{- include "seamark.podSecurity" .root | nindent 8 }}
      topologySpreadConstraints:
        {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
        - topologyKey: {{ . }}
          maxSkew: 1
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "seamark.selector" $.component | nindent 14 }}
        {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "seamark.image" . }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          {{- $grants := eq .component "manager" | ternary (include "seamark.grants" .root) "" }}
          {{- if or $injector $config $grants $values.extraArgs }}
          args:
            {{- if $injector }}
            - injector
            {{- end }}
            {{- if $config }}
            - --config=/etc/seamark/{{ .component }}.yaml
            {{- end }}
            {{- with $grants }}
            - --grants={{ . }}
            {{- end }}
            {{- with $values.extraArgs }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- end }}
          {{- $memoryLimit := include "seamark.memoryLimit" $values }}
          {{- if or $memoryLimit $values.env }}
          env:
            {{- with $memoryLimit }}
            - name: GOMEMLIMIT
              value: {{ . }}
            {{- end }}
            {{- with $values.env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- end }}
          ports:
            - name: metrics
              containerPort: 8080
            - name: health
              containerPort: 8081
            {{- if $webhook }}
            - name: webhook
              containerPort: 9443
            {{- end }}
          livenessProbe:
            httpGet:
              path: /healthz
              port: health
            initialDelaySeconds: 10
            periodSeconds: 10
          readinessProbe:
            httpGet:
              path: /readyz
              port: health
            periodSeconds: 5
          resources:
            {{- toYaml $values.resources | nindent 12 }}
          # The program writes no files and binds no port below 1024.
          securityContext:
            {{- include "seamark.containerSecurity" .root | nindent 12 }}
          {{- if $config }}
          volumeMounts:
            - name: config
              mountPath: /etc/seamark
              readOnly: true
            {{- if $certManager }}
            - name: {{ $volume }}
              mountPath: /run/seamark/{{ $volume }}
              readOnly: true
            {{- end }}
          {{- end }}
      {{- if $config }}
      volumes:
        - name: config
          configMap:
            name: {{ $name }}
        {{- if $certManager }}
        - name: {{ $volume }}
          secret:
            secretName: seamark-{{ $volume }}-certificate
        {{- end }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "seamark.selector" .component | nindent 4 }}
    {{- include "seamark.labels" .root | nindent 4 }}
data:
  {{ .component }}.yaml: |
    {{- $config | nindent 4 }}
  {{- if $webhook }}
  {{- with $injector | ternary .root.Values.sidecarSets.clientCA .root.Values.serverless.webhook.clientCA }}
  client-ca.crt: |
    {{- . | nindent 4 }}
  {{- end }}
  {{- end }}
{{- end }}
{{- if and $values.podDisruptionBudget.enabled (gt (int $values.replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "seamark.selector" .component | nindent 4 }}
    {{- include "seamark.labels" .root | nindent 4 }}
spec:
  maxUnavailable: 1
  # Evicting a pod that is not ready interrupts nothing.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "seamark.selector" .component | nindent 6 }}
{{- end }}
{{- end }}
