package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The whole path without faults of servers. */
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
                Thread.sleep(400);
            }
            journey.ledger.check();
            Map<String, JsonNode> signals = journey.ledger.signals();
            assertEquals(20, signals.size());
            signals.values().forEach(each -> assertTrue(each.get("value").asText().contains("e2"), each.toString()));
            assertEquals(List.of(), journey.ledger.deadLetters());
        }
    }
}
