package inferenceblueprints.enrichment;

/**
 * One version of a session, to be answered.
 *
 * @param key the session's owner
 * @param session identifies the session to the router; it names no person
 * @param version orders the answers of one key
 * @param text the user's message
 */
public record SessionPrompt(String key, String session, long version, String text) {
    /** Versions that a session may have in one millisecond of its events. */
    static final int VERSIONS_PER_MILLI = 1000;

    /** Returns the time of the newest event, in milliseconds since 1970. */
    long newestEvent() {
        return version / VERSIONS_PER_MILLI;
    }
}
