/**
 * The Flink job that enriches sessions: events from Kafka become prompts, and answers become signals.
 *
 * <p>{@link inferenceblueprints.enrichment.EnrichmentJob} shows the whole path. Records and public classes are what Flink
 * keeps in snapshots: fields may be added to them, but not change their type.
 */
package inferenceblueprints.enrichment;
