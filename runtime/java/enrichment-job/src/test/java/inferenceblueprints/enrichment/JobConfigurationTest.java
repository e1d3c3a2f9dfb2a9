package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** The example that the Python library's tests read too. */
class JobConfigurationTest {
    private static ObjectNode example() throws Exception {
        Path file = Path.of(System.getProperty("checkout"), "tests/runtime/streaming/job.json");
        return (ObjectNode) JsonMapper.builder().build().readTree(Files.readString(file));
    }

    @Test
    void theExampleIsRead() throws Exception {
        JobConfiguration configuration = JobConfiguration.read(example().toString());
        assertEquals("shopper-dead-letters", configuration.kafka().deadLetterTopic());
        assertEquals(1_800_000, configuration.session().gapMillis());
        assertEquals(100, configuration.endpoint().maxInFlightPerSubtask());
        assertTrue(configuration.request().responseFormat().contains("\"json_schema\""));
        assertEquals("shopper-intent", configuration.signal().name());
        Templates.rendering(configuration.prompt());
    }

    @Test
    void allFaultsAreNamedAtOnce() throws Exception {
        ObjectNode document = example();
        ((ObjectNode) document.get("endpoint")).put("attempts", 0).put("authentication", "bearer").put("maxInFlight", 1);
        ((ObjectNode) document.get("session")).put("debounceMillis", 1_800_000);
        ((ObjectNode) document.at("/signal/store")).put("authentication", "iam");
        String message = assertThrows(
                        IllegalArgumentException.class, () -> JobConfiguration.read(document.toString()))
                .getMessage();
        for (String fault : new String[] {
            "endpoint.attempts: must be above 0; got 0",
            "endpoint.authentication: must be none; got bearer",
            "endpoint.maxInFlight: must be at least",
            "session.debounceMillis: must be 0 to below gapMillis; got 1800000",
            "signal.store: iam needs tls and cluster",
            "signal.store: iam needs user and cacheName"
        }) {
            assertTrue(message.contains(fault), message);
        }
    }

    @Test
    void aFrontDoorNeedsAKeyAndAKeyNeedsAFrontDoor() throws Exception {
        ObjectNode document = example();
        ObjectNode endpoint = (ObjectNode) document.get("endpoint");
        endpoint.putObject("door").put("model", "streaming:shopper").put("team", "ads");
        assertEquals(
                "configuration: endpoint.door.secret: missing",
                assertThrows(IllegalArgumentException.class, () -> JobConfiguration.read(document.toString()))
                        .getMessage());
        ((ObjectNode) endpoint.get("door")).put("secret", "arn:aws:secretsmanager:us-east-1:123456789012:secret:a-AbCdEf");
        assertEquals(
                "configuration: endpoint.authentication: must be bearer; got none",
                assertThrows(IllegalArgumentException.class, () -> JobConfiguration.read(document.toString()))
                        .getMessage());
        endpoint.put("authentication", "bearer");
        JobConfiguration configuration = JobConfiguration.read(document.toString());
        assertEquals("ads", configuration.endpoint().door().team());
        ModelCalls calls = new ModelCalls(configuration);
        SessionPrompt version = new SessionPrompt("k", "s", 1, "text");
        assertTrue(calls.requestBody(version).contains("\"model\":\"" + configuration.request().model() + "\""));
    }

    @Test
    void missingAndUnknownFieldsAreRefused() throws Exception {
        ObjectNode missing = example();
        ((ObjectNode) missing.get("kafka")).remove("topic");
        missing.remove("history");
        String message = assertThrows(
                        IllegalArgumentException.class, () -> JobConfiguration.read(missing.toString()))
                .getMessage();
        assertEquals("configuration: kafka.topic: missing; history: missing", message);
        ObjectNode unknown = example().put("colour", "red");
        assertTrue(assertThrows(IllegalArgumentException.class, () -> JobConfiguration.read(unknown.toString()))
                .getMessage()
                .contains("colour"));
    }

    @Test
    void aStartWithoutADocumentSaysWhatToSet() {
        String message = assertThrows(
                        IllegalArgumentException.class, () -> EnrichmentJob.main(new String[0]))
                .getMessage();
        assertTrue(message.contains("set the argument --configuration FILE"), message);
    }
}
