package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import inferenceblueprints.enrichment.ModelServer.Behaviour;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What becomes of events while the model answers nobody. */
class ModelAwayTest {
    private static final int SHOPPERS = 40;
    /** Fewer than sessions, so that most of them find no place among the calls. */
    private static final int CALLS = 5;

    private static Journey journey(String name, long maxAgeMillis) throws Exception {
        return new Journey(name).with(document -> ((ObjectNode) document.get("endpoint"))
                .put("deadlineMillis", 1_500)
                .put("maxInFlightPerSubtask", CALLS)
                .put("maxAgeMillis", maxAgeMillis));
    }

    private static void round(Journey journey, long time, String name) {
        for (int shopper = 0; shopper < SHOPPERS; shopper++) {
            journey.send("s" + shopper, time, name);
        }
        journey.flush();
    }

    /**
     * Events became dead letters after the deadline. An operator whose places were all taken let no checkpoint pass, so a job
     * would have failed after ten minutes.
     */
    @ParameterizedTest
    @EnumSource(
            value = Behaviour.class,
            names = {"UNAVAILABLE", "HANG"})
    void eventsWaitAndTheirNewestVersionIsAnswered(Behaviour behaviour) throws Exception {
        try (Journey journey = journey("away-" + behaviour.name().toLowerCase(), 600_000)) {
            journey.model.behaviour = request -> behaviour;
            long now = System.currentTimeMillis();
            journey.start(1, null);
            round(journey, now, "e1");
            Rig.await(() -> journey.model.requests.size() >= CALLS ? "" : "the first calls");
            // Longer than the deadline with all its attempts.
            Thread.sleep(4_000);
            round(journey, now + 1, "e2");
            Thread.sleep(2_000);
            Rig.CLUSTER.savepoint(journey.job(), journey.folder.resolve("savepoints"));
            assertEquals(0, journey.ledger.deadLetters().size());
            journey.model.behaviour = request -> Behaviour.ANSWER;
            journey.ledger.check();
            assertEquals(0, journey.ledger.deadLetters().size());
            assertEquals(SHOPPERS, journey.ledger.signals().size());
            for (JsonNode signal : journey.ledger.signals().values()) {
                assertEquals("e2 12", signal.get("value").textValue());
            }
            int answers = journey.ledger.lines().size();
            assertTrue(answers <= SHOPPERS + 2 * CALLS, "held sessions were asked for their newest version only: " + answers);
        }
    }

    /** Those that have a place among the calls, and those that wait for one. */
    @Test
    void eventsThatAreTooOldBecomeDeadLettersWithTheirRequest() throws Exception {
        try (Journey journey = journey("too-old", 4_000)) {
            journey.model.behaviour = request -> Behaviour.HANG;
            journey.start(1, null);
            long began = System.currentTimeMillis();
            round(journey, began, "e1");
            Rig.await(() -> journey.ledger.deadLetters().size() >= SHOPPERS ? "" : "dead letters");
            for (JsonNode letter : journey.ledger.deadLetters()) {
                assertTrue(letter.get("request").get("messages").isArray(), letter.toString());
                assertTrue(letter.get("at").longValue() - began >= 1_400, "it waited: " + letter);
            }
            assertTrue(
                    journey.ledger.deadLetters().stream()
                            .anyMatch(each -> each.get("message").textValue().contains("too few calls")),
                    "sessions that found no place");
            journey.model.behaviour = request -> Behaviour.ANSWER;
            Thread.sleep(6_000);
            round(journey, System.currentTimeMillis(), "e2");
            journey.ledger.check();
            assertEquals(SHOPPERS, journey.ledger.signals().size());
        }
    }

    /** A producer refuses records above a MiB, which failed the job again and again. */
    @Test
    void aDeadLetterThatKafkaWouldRefuseLeavesItsRequestOut() throws Exception {
        try (Journey journey = new Journey("large-letter")
                .with(each -> ((ObjectNode) each.get("prompt")).put("system", "ü".repeat(700_000)))) {
            journey.model.behaviour = request -> Behaviour.REFUSE;
            journey.start(1, null);
            round(journey, System.currentTimeMillis(), "e1");
            Rig.await(() -> journey.ledger.deadLetters().size() >= SHOPPERS ? "" : "dead letters");
            JsonNode letter = journey.ledger.deadLetters().get(0);
            assertTrue(letter.get("request").isNull());
            assertTrue(letter.get("message").textValue().contains("the request is left out"), letter.toString());
            assertTrue(letter.get("version").isNumber());
        }
    }
}
