/**
 * A client of OpenAI-compatible endpoints for services that cannot wait. It uses the JDK's HTTP client and Jackson.
 *
 * <p>{@link inferenceblueprints.endpoint.EndpointClient} is the entry point. Packages below this one hold adapters, each
 * of which needs one optional library.
 */
package inferenceblueprints.endpoint;
