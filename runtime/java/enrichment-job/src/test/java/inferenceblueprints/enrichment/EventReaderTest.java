package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class EventReaderTest {
    private static final long NOW = 1_790_000_000_000L;
    private final EventReader reader = new EventReader(new JobConfiguration.Session("key", "at", "id", 1, 0, 1));

    private Event read(String body) throws EventReader.PoisonException {
        return reader.read(new KafkaRecord("clicks", 3, 7, body.getBytes(StandardCharsets.UTF_8)), NOW);
    }

    @Test
    void anEventKeepsItsText() throws Exception {
        String body = "{ \"key\":\"ü\",\"at\":5,\"id\":12, \"price\":1.10}";
        assertEquals(new Event("ü", 5, "12", body, 3, 7, "clicks"), read(body));
        assertNull(read("{\"key\":1,\"at\":\"1970-01-01T00:00:00.005Z\"}").id());
        assertEquals(5, read("{\"key\":1,\"at\":\"1970-01-01T01:00:00.005+01:00\"}").time());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{|the event is not JSON",
                "{} {}|the event is not JSON",
                "3|not a JSON object",
                "{\"at\":1}|key: missing",
                "{\"key\":[1],\"at\":1}|key: missing",
                "{\"key\":\"\",\"at\":1}|key: must have 1 to 1024 bytes; got 0",
                "{\"key\":\"a\"}|at: must be milliseconds",
                "{\"key\":\"a\",\"at\":1.5}|at: must be milliseconds",
                "{\"key\":\"a\",\"at\":-1}|at: must be after 1970",
                "{\"key\":\"a\",\"at\":1790000600001}|at most ten minutes ahead",
                "{\"key\":\"a\",\"at\":99999999999999999999}|at: must be milliseconds",
                "{\"key\":\"a\",\"at\":\"2026-01-01T00:00:00\"}|not a time in ISO 8601 with offset",
            })
    void otherRecordsArePoison(String body, String message) {
        String got = assertThrows(EventReader.PoisonException.class, () -> read(body)).getMessage();
        assertTrue(got.contains(message), got);
    }

    @Test
    void theClockOfAProducerMayBeTenMinutesAhead() throws Exception {
        assertEquals(NOW + 600_000, read("{\"key\":\"a\",\"at\":" + (NOW + 600_000) + "}").time());
    }
}
