package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import inferenceblueprints.enrichment.ModelServer.Behaviour;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;

/** What becomes of calls when the endpoint fails in many ways at once. */
class EndpointFaultsTest {
    private static final long NOON = 1_790_000_000_000L;

    @Test
    void faultsThatPassAreRepeatedAndOthersAreDeadLetters() throws Exception {
        // Calls that hang take all of it. A busy machine must repeat the others within it.
        try (Journey journey = new Journey("faults")
                .with(each -> ((ObjectNode) each.get("endpoint")).put("deadlineMillis", 20_000))) {
            Map<String, Integer> tries = new ConcurrentHashMap<>();
            Set<Behaviour> passing = Set.of(
                    Behaviour.UNAVAILABLE, Behaviour.ASK_TO_WAIT, Behaviour.RESET, Behaviour.END_IN_THE_MIDDLE);
            journey.model.behaviour = request -> {
                String kind = request.user().split(" ")[0];
                Behaviour chosen = Behaviour.valueOf(kind.substring(0, kind.indexOf('-')));
                int number = tries.merge(kind, 1, Integer::sum);
                return passing.contains(chosen) && number > 1 ? Behaviour.ANSWER : chosen;
            };
            journey.start(2, null);
            for (Behaviour each : Behaviour.values()) {
                for (int number = 0; number < 3; number++) {
                    journey.send(each + "-" + number, NOON, each + "-" + number);
                }
            }
            journey.flush();
            journey.ledger.check();
            Map<String, JsonNode> signals = journey.ledger.signals();
            Map<String, String> reasons = new TreeMap<>();
            for (JsonNode letter : journey.ledger.deadLetters()) {
                reasons.put(letter.get("session").textValue(), letter.get("reason").textValue());
                assertEquals("m", letter.at("/request/model").textValue());
                assertTrue(letter.at("/request/messages/1/content").textValue().contains("-"));
            }
            Map<Behaviour, String> expected = Map.of(
                    Behaviour.REFUSE, "endpoint",
                    Behaviour.EMPTY, "answer",
                    Behaviour.DRIP, "timeout",
                    Behaviour.HANG, "timeout");
            for (Behaviour each : Behaviour.values()) {
                for (int number = 0; number < 3; number++) {
                    String key = each + "-" + number;
                    assertEquals(expected.get(each), reasons.get(key), key);
                    assertEquals(expected.get(each) == null, signals.containsKey(key), key);
                    int sent = passing.contains(each) ? 2 : 1;
                    assertTrue(tries.get(key) >= sent, key + " was sent " + tries.get(key) + " times");
                }
            }
        }
    }

    @Test
    void everyVersionThatNoNewerOneSupersedesIsAnsweredOrADeadLetter() throws Exception {
        int shoppers = 5;
        int rounds = 6;
        try (Journey journey = new Journey("every-version")
                .with(each -> ((ObjectNode) each.get("endpoint")).put("deadlineMillis", 60_000))) {
            journey.model.behaviour = request -> {
                String[] events = request.user().strip().split("\n");
                return events[events.length - 1].startsWith("odd") ? Behaviour.REFUSE : Behaviour.ANSWER;
            };
            journey.start(2, null);
            for (int round = 0; round < rounds; round++) {
                for (int shopper = 0; shopper < shoppers; shopper++) {
                    journey.send("s" + shopper, NOON + round * 1_000L, (round % 2 == 0 ? "even" : "odd") + round);
                }
                journey.flush();
                journey.ledger.check();
            }
            assertEquals(shoppers * rounds / 2, journey.ledger.lines().size(), "answers of even rounds");
            assertEquals(shoppers * rounds / 2, journey.ledger.deadLetters().size(), "dead letters of odd rounds");
        }
    }

    @Test
    void anEndpointThatStaysUnavailableFillsTheDeadLetters() throws Exception {
        try (Journey journey = new Journey("down")) {
            journey.model.behaviour = request -> Behaviour.UNAVAILABLE;
            journey.start(1, null);
            for (int shopper = 0; shopper < 30; shopper++) {
                journey.send("s" + shopper, NOON, "e");
            }
            journey.flush();
            Rig.await(() -> journey.ledger.deadLetters().size() >= 30 ? "" : "30 dead letters");
            journey.model.behaviour = request -> Behaviour.ANSWER;
            // The circuit breaker lets calls through again after its pause.
            Thread.sleep(6_000);
            for (int shopper = 0; shopper < 30; shopper++) {
                journey.send("s" + shopper, NOON + 1, "e2");
            }
            journey.flush();
            journey.ledger.check();
            assertEquals(30, journey.ledger.signals().size());
            journey.ledger.deadLetters().forEach(each -> assertEquals("endpoint", each.get("reason").textValue()));
        }
    }
}
