package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import inferenceblueprints.endpoint.Answer;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

class NewestVersionsTest {
    private final NewestVersions newest = new NewestVersions();
    private final CompletableFuture<Answer> call = new CompletableFuture<>();

    @Test
    void aNewerVersionCancelsAnOlderOneOfTheSameSessionOnly() {
        NewestVersions.Entry older = newest.begin("a", 1);
        newest.sent(older, call);
        NewestVersions.Entry other = newest.begin("b", 1);
        NewestVersions.Entry newer = newest.begin("a", 2);
        assertTrue(call.isCancelled());
        assertTrue(newest.isSuperseded(older));
        assertFalse(newest.isSuperseded(newer));
        assertFalse(newest.isSuperseded(other));
    }

    @Test
    void anOlderVersionThatBeginsLaterIsSuperseded() {
        newest.begin("a", 2);
        assertTrue(newest.isSuperseded(newest.begin("a", 1)), "as after a restore");
    }

    @Test
    void aVersionThatWaitsForItsNextAttemptStaysSupersededAfterTheNewerOneEnded() {
        newest.begin("a", 1);
        newest.begin("a", 2);
        newest.end("a", 2);
        assertTrue(newest.isSuperseded(newest.begin("a", 1)));
    }

    @Test
    void aCallThatIsSentTooLateIsCancelled() {
        NewestVersions.Entry older = newest.begin("a", 1);
        newest.begin("a", 2);
        newest.sent(older, call);
        assertTrue(call.isCancelled());
    }

    @Test
    void endedVersionsLeaveNothing() {
        NewestVersions.Entry entry = newest.begin("a", 1);
        newest.sent(entry, call);
        assertEquals(1, newest.attempts(newest.begin("a", 1)), "the same entry");
        assertEquals(1, newest.size());
        newest.end("a", 1);
        assertNull(newest.end("a", 1));
        assertEquals(0, newest.size());
    }
}
