/** Metrics by Micrometer, for which {@code io.micrometer:micrometer-core} must be on the class path. */
package inferenceblueprints.endpoint.micrometer;
