package inferenceblueprints.enrichment;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;

/** The JSON of dead letters, as contracts/inference_contracts/dead_letters.py describes it. */
final class DeadLetters {
    private static final JsonMapper MAPPER = JsonMapper.builder().build();

    /** A MiB, less the longest key and what a record and a request have beside them. */
    static final int MOST_BYTES = 1_040_000;

    private DeadLetters() {}

    /**
     * Returns the bytes of a record. A producer takes at most a MiB with the record's key, by its default
     * {@code max.request.size} (https://kafka.apache.org/documentation/#producerconfigs_max.request.size), and fails the job
     * after that. A larger letter leaves its request out and says so.
     */
    static byte[] record(String job, String topic, Rejected rejected) {
        byte[] whole = json(job, topic, rejected).getBytes(StandardCharsets.UTF_8);
        if (whole.length <= MOST_BYTES) {
            return whole;
        }
        String message = rejected.message() + "; the request is left out, because the letter has " + whole.length
                + " bytes with it and Kafka takes " + MOST_BYTES;
        Rejected shorter = new Rejected(
                rejected.reason(),
                message,
                rejected.time(),
                rejected.attempts(),
                rejected.key(),
                rejected.version(),
                null,
                null,
                rejected.partition(),
                rejected.offset(),
                rejected.topic());
        return json(job, topic, shorter).getBytes(StandardCharsets.UTF_8);
    }

    static String json(String job, String topic, Rejected rejected) {
        ObjectNode letter = MAPPER.createObjectNode()
                .put("job", job)
                .put("reason", rejected.reason())
                .put("message", rejected.message())
                .put("at", rejected.time())
                .put("attempts", rejected.attempts())
                .put("session", rejected.key());
        letter.put("version", rejected.version() < 0 ? null : rejected.version());
        letter.put("event", rejected.event());
        try {
            letter.set("request", rejected.request() == null ? null : MAPPER.readTree(rejected.request()));
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
        if (rejected.partition() < 0) {
            letter.putNull("source");
        } else {
            letter.putObject("source")
                    .put("topic", rejected.topic() == null ? topic : rejected.topic())
                    .put("partition", rejected.partition())
                    .put("offset", rejected.offset());
        }
        return letter.toString();
    }
}
