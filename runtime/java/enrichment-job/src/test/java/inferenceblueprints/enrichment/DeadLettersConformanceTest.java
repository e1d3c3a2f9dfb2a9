package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.nio.file.Path;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The job writes the dead letters that Python reads (tests/runtime/streaming/test_dead_letters.py). */
class DeadLettersConformanceTest {
    private static final JsonMapper MAPPER = JsonMapper.builder().build();

    static Stream<JsonNode> letters() throws IOException {
        Path file = Path.of(System.getProperty("checkout"), "tests", "runtime", "streaming", "dead_letters.json");
        return StreamSupport.stream(MAPPER.readTree(file.toFile()).get("letters").spliterator(), false);
    }

    @ParameterizedTest
    @MethodSource("letters")
    void writesTheExamples(JsonNode letter) throws IOException {
        JsonNode source = letter.get("source");
        Rejected rejected = new Rejected(
                letter.get("reason").textValue(),
                letter.get("message").textValue(),
                letter.get("at").longValue(),
                letter.get("attempts").intValue(),
                letter.get("session").textValue(),
                letter.get("version").asLong(-1),
                letter.get("event").isNull() ? null : letter.get("event").binaryValue(),
                letter.get("request").isNull() ? null : letter.get("request").toString(),
                source.path("partition").asInt(-1),
                source.path("offset").asLong(-1),
                null);
        String written = DeadLetters.json(letter.get("job").textValue(), source.path("topic").asText(), rejected);
        assertEquals(letter, MAPPER.readTree(written));
    }
}
