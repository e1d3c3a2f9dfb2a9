package inferenceblueprints.enrichment;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** The JSON of dead letters, as contracts/inference_contracts/dead_letters.py describes it. */
final class DeadLetters {
    private static final JsonMapper MAPPER = JsonMapper.builder().build();

    private DeadLetters() {}

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
                    .put("topic", topic)
                    .put("partition", rejected.partition())
                    .put("offset", rejected.offset());
        }
        return letter.toString();
    }
}
