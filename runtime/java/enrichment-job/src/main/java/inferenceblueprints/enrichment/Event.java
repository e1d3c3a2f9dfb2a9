package inferenceblueprints.enrichment;

/**
 * An event of a session.
 *
 * @param key the session's owner
 * @param time milliseconds since 1970
 * @param id identifies the event; null if events have no identifier
 * @param body the JSON object
 * @param partition where Kafka has it
 * @param offset where Kafka has it
 * @param topic where Kafka has it; null in snapshots of releases that read one topic
 */
public record Event(String key, long time, String id, String body, int partition, long offset, String topic) {}
