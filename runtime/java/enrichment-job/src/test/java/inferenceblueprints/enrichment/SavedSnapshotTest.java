package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

/** A snapshot of an earlier version of the job, which every later version must be able to continue. */
class SavedSnapshotTest {
    @Test
    void theJobContinuesFromTheSnapshotOfAnEarlierVersion() throws Exception {
        try (Journey journey = SavedSnapshot.journey()) {
            // The topic still has the events; the snapshot says that they were read.
            SavedSnapshot.sendAnswered(journey);
            SavedSnapshot.sendOpen(journey);
            journey.start(3, SavedSnapshotTest.class.getResource("/snapshot").toString());
            SavedSnapshot.sendNext(journey);
            journey.ledger.check();
            List<String> prompts =
                    journey.model.requests.stream().map(ModelServer.Request::user).sorted().toList();
            assertEquals(List.of("e0 12\n\ne1 12\n\ne2 12\n", "o0 12\n"), prompts.stream()
                    .map(each -> each.replaceAll("\n+", "\n\n").replaceAll("\n\n$", "\n"))
                    .toList());
            assertTrue(journey.ledger.deadLetters().isEmpty());
        }
    }
}
