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
 */
public record Event(String key, long time, String id, String body, int partition, long offset) {}
