/** Traces by OpenTelemetry, for which {@code io.opentelemetry:opentelemetry-api} must be on the class path. */
package inferenceblueprints.endpoint.opentelemetry;
