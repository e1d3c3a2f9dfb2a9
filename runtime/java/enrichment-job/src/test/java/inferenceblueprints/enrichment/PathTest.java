package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The whole path while all servers work: sessions, versions, and events that are not usual. */
class PathTest {
    private static final long NOON = 1_790_000_000_000L;

    @Test
    void everyEventOfASessionReachesTheStore() throws Exception {
        try (Journey journey = new Journey("plain")) {
            journey.start(2, null);
            for (int round = 0; round < 3; round++) {
                for (int shopper = 0; shopper < 20; shopper++) {
                    journey.send("s" + shopper, NOON + round * 1_000 + shopper, "e" + round);
                }
                journey.flush();
                int asked = 20 * round + 20;
                Rig.await(() -> journey.model.requests.size() >= asked ? "" : asked + " requests");
            }
            journey.ledger.check();
            Map<String, JsonNode> signals = journey.ledger.signals();
            assertEquals(20, signals.size());
            signals.values().forEach(each -> assertEquals("e2 12", each.get("value").textValue()));
            assertEquals(List.of(), journey.ledger.deadLetters());
            Map<String, List<ModelServer.Request>> sessions =
                    journey.model.requests.stream().collect(Collectors.groupingBy(ModelServer.Request::session));
            assertEquals(20, sessions.size(), "a session keeps its identifier");
            sessions.values().forEach(PathTest::growing);
            sessions.keySet().forEach(each -> assertTrue(each.matches("[0-9a-f]{32}"), "it names nobody: " + each));
        }
    }

    /** Each prompt begins with the former one, so that the prefix cache has it. */
    private static void growing(List<ModelServer.Request> versions) {
        assertEquals("e0 12\n\ne1 12\n\ne2 12\n", versions.get(versions.size() - 1).user());
        for (int each = 1; each < versions.size(); each++) {
            String former = versions.get(each - 1).user();
            String next = versions.get(each).user();
            assertTrue(next.startsWith(former) && next.length() > former.length(), former + " → " + next);
            assertEquals(versions.get(0).body().at("/messages/0"), versions.get(each).body().at("/messages/0"));
            assertEquals(2, versions.get(each).body().get("messages").size());
        }
    }

    @Test
    void unusualEventsHarmNoOther() throws Exception {
        try (Journey journey = new Journey("unusual")) {
            journey.start(2, null);
            byte[] broken = {'{', (byte) 0xff, '}'};
            journey.raw("p", "no JSON");
            journey.raw("p", broken);
            journey.raw("p", (byte[]) null);
            journey.raw("p", "[1]");
            journey.raw("p", "{\"time\":1}");
            journey.raw("p", "{\"shopper\":\"\",\"time\":1}");
            journey.raw("p", "{\"shopper\":\"p\"}");
            journey.raw("p", "{\"shopper\":\"p\",\"time\":\"noon\"}");
            journey.raw("p", Journey.event("p", System.currentTimeMillis() + 3_600_000, "future"));
            journey.raw("p", Journey.event("p", NOON, "x".repeat(300_000)));
            // Repeated, out of order, and of a session that is over.
            journey.send("a", NOON, "a0");
            journey.send("a", NOON + 9_000, "a2");
            journey.raw("a", Journey.event("a", NOON + 9_000, "a2"));
            journey.send("a", NOON + 4_000, "a1");
            journey.raw("a", Journey.event("a", NOON - 3_600_000, "old"));
            journey.raw("a", Journey.event("a", NOON, "a0"));
            // The template divides by the price.
            journey.send("t", NOON, "t0");
            journey.raw("t", "{\"shopper\":\"t\",\"time\":" + (NOON + 1) + ",\"id\":\"t1\",\"price\":0}");
            journey.ledger.sent("t", NOON + 1);
            journey.send("t", NOON + 2, "t2");
            // A second session of the same key.
            journey.send("b", NOON, "b0");
            journey.ledger.over("b");
            journey.raw("b", "{\"shopper\":\"b\",\"time\":\"2026-09-22T12:00:00+02:00\",\"id\":\"b1\"}");
            journey.ledger.sent("b", 1_790_071_200_000L);
            journey.flush();
            journey.ledger.check();
            Map<String, String> values = new TreeMap<>();
            journey.ledger.signals().forEach((key, signal) -> values.put(key, signal.get("value").textValue()));
            assertEquals("t2 12", values.get("t"));
            assertEquals("b1 12", values.get("b"));
            assertTrue(List.of("a2 12", "a1 12").contains(values.get("a")), values.toString());
            Rig.await(() -> journey.ledger.deadLetters().size() >= 12 ? "" : "12 dead letters");
            Map<String, Long> reasons = journey.ledger.deadLetters().stream()
                    .collect(Collectors.groupingBy(
                            each -> each.get("reason").textValue(), TreeMap::new, Collectors.counting()));
            assertEquals(Map.of("poison", 9L, "too_large", 1L, "late", 1L, "template", 1L), reasons);
            for (JsonNode letter : journey.ledger.deadLetters()) {
                assertEquals(letter.get("reason").textValue().equals("too_large"), letter.get("event").isNull());
                assertEquals(journey.name, letter.at("/source/topic").textValue());
                assertTrue(letter.at("/source/offset").isIntegralNumber());
                assertFalse(letter.get("message").textValue().isBlank());
            }
            assertTrue(
                    journey.ledger.deadLetters().stream()
                            .map(each -> Base64.getDecoder().decode(each.get("event").asText()))
                            .anyMatch(each -> new String(each, StandardCharsets.ISO_8859_1)
                                    .equals(new String(broken, StandardCharsets.ISO_8859_1))),
                    "the original bytes are kept");
            // The longest, not the last: a superseded request may reach the server after its successor.
            String a = journey.model.requests.stream()
                    .map(ModelServer.Request::user)
                    .filter(each -> each.contains("a0"))
                    .max(Comparator.comparingInt(String::length))
                    .orElseThrow();
            assertEquals(1, a.split("a0").length - 1 + a.split("a2").length - 2, "no event is in the prompt twice: " + a);
        }
    }

    @Test
    void aNewerVersionSupersedesTheOneInFlight() throws Exception {
        try (Journey journey = new Journey("superseded")) {
            journey.model.behaviour = request ->
                    request.user().contains("e1") ? ModelServer.Behaviour.ANSWER : ModelServer.Behaviour.HANG;
            journey.start(2, null);
            journey.send("s", NOON, "e0");
            journey.flush();
            Rig.await(() -> journey.model.requests.isEmpty() ? "the first request" : "");
            journey.send("s", NOON + 1, "e1");
            journey.flush();
            journey.ledger.check();
            Rig.await(() -> journey.model.left.isEmpty() ? "the first request is cancelled on the wire" : "");
            assertEquals(1, journey.ledger.lines().size(), "the superseded version has no answer");
            assertEquals(List.of(), journey.ledger.deadLetters());
        }
    }
}
