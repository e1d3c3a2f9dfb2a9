package inferenceblueprints.enrichment;

/**
 * An event or a version without an answer. It becomes a dead letter.
 *
 * @param reason reason from the closed list of the contract
 * @param message what happened, for people
 * @param time milliseconds since 1970
 * @param attempts calls that were sent
 * @param key the session's owner; null if the event names none
 * @param version the version; -1 for a single event
 * @param event bytes of the event; null for a version
 * @param request JSON of the request; null for an event
 * @param partition where Kafka has the event; -1 for a version
 * @param offset where Kafka has the event; -1 for a version
 * @param topic where Kafka has the event; null for a version, and for an event of the first topic
 */
public record Rejected(
        String reason,
        String message,
        long time,
        int attempts,
        String key,
        long version,
        byte[] event,
        String request,
        int partition,
        long offset,
        String topic) {}
