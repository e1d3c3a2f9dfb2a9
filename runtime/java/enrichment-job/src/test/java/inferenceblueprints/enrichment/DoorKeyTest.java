package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The key of a job at the front door: when its secret is read, and what is sent meanwhile. */
class DoorKeyTest {
    private static final Map<String, String> OLD = Map.of("Authorization", "Bearer ibk-old");
    private static final Map<String, String> NEW = Map.of("Authorization", "Bearer ibk-new");

    private String value = "{\"shop\":\"ibk-old\",\"ads\":\"ibk-ads\"}";
    private long now = TimeUnit.HOURS.toNanos(-1);
    private final DoorKey key = new DoorKey(this::read, "shop", () -> now);

    private String read() throws IOException {
        if (value == null) {
            throw new IOException("Secrets Manager answers 400 ThrottlingException");
        }
        return value;
    }

    private Map<String, String> sent() {
        return key.headers(null, Map.of(), new byte[0]);
    }

    @Test
    void theKeyOfTheTeamIsSentAndLookedAtAgainAfterTenMinutes() {
        key.look();
        assertEquals(OLD, sent());
        assertNull(key.missing());
        assertEquals(600, TimeUnit.NANOSECONDS.toSeconds(key.untilNextLook()));
        now += TimeUnit.SECONDS.toNanos(600);
        assertEquals(0, key.untilNextLook());
    }

    @Test
    void withoutAKeyNothingIsSentAndTheSecretIsReadEveryFiveSeconds() {
        assertTrue(key.missing().contains("not read yet"));
        assertThrows(DoorKey.MissingException.class, this::sent);
        for (String wrong : new String[] {"{}", "{\"ads\":\"ibk-ads\"}", "{\"shop\":7}", "[]", "ibk", ""}) {
            value = wrong;
            key.look();
            assertTrue(key.missing() != null, wrong);
            assertEquals(5, TimeUnit.NANOSECONDS.toSeconds(key.untilNextLook()), wrong);
        }
        value = "{\"shop\":\"ibk-old\"}";
        key.look();
        assertEquals(OLD, sent());
    }

    @Test
    void aRefusedKeyIsLookedAtSoonAndAtMostEveryFiveSeconds() {
        key.look();
        assertFalse(key.refused(OLD), "the job repeats the call");
        assertEquals(5, TimeUnit.NANOSECONDS.toSeconds(key.untilNextLook()));
        now += TimeUnit.SECONDS.toNanos(60);
        assertTrue(key.untilNextLook() < 0, "at once, if the last look is longer ago");
        value = "{\"shop\":\"ibk-new\"}";
        key.look();
        assertEquals(NEW, sent());
        // The refusal of a call that was sent with the old key says nothing about the new one.
        key.refused(OLD);
        assertEquals(600, TimeUnit.NANOSECONDS.toSeconds(key.untilNextLook()));
    }

    @Test
    void aKeyIsKeptWhileItsSecretCannotBeRead() {
        key.look();
        value = null;
        key.look();
        assertEquals(OLD, sent());
        assertNull(key.missing());
        assertEquals(5, TimeUnit.NANOSECONDS.toSeconds(key.untilNextLook()));
    }

    @Test
    void noMessageHasAKey() {
        for (String wrong : new String[] {"{\"shop\":\"ibk-secret\"", "secret"}) {
            value = wrong;
            key.look();
            assertEquals("the secret is no JSON object with a key for each team", key.missing());
        }
    }
}
