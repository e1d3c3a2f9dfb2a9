{{/* The SecretProviderClass of a release, if a process needs secrets. Takes the root context. */}}
{{- define "model-library.secretProviderClass" -}}
{{- if .Values.secrets }}
# Read from Secrets Manager with the pod's own identity; the value is in no template and no values file.
apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClass
metadata:
  name: {{ include "model-library.secrets" . }}
  labels:
    app.kubernetes.io/name: {{ .Chart.Name }}
    app.kubernetes.io/instance: {{ .Release.Name }}
    app.kubernetes.io/managed-by: {{ .Release.Service }}
    helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
spec:
  provider: aws
  parameters:
    usePodIdentity: "true"
    objects: |
      {{- range .Values.secrets }}
      - objectName: {{ .arn | quote }}
        objectAlias: {{ .key }}
        objectType: secretsmanager
      {{- end }}
  secretObjects:
    - secretName: {{ include "model-library.secrets" . }}
      type: Opaque
      data:
        {{- range .Values.secrets }}
        - objectName: {{ .key }}
          key: {{ .key }}
        {{- end }}
{{- end }}
{{- end }}
