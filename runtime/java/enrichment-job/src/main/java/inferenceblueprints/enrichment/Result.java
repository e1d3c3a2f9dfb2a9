package inferenceblueprints.enrichment;

/**
 * What became of a version.
 *
 * @param prompt the version
 * @param outcome the kind of result
 * @param text the answer; empty without one
 * @param reason reason of a dead letter; empty for other results
 * @param message what happened, for people
 * @param attempts calls that were sent
 * @param time when the call ended, in milliseconds since 1970
 * @param callMillis duration of the call with its retries
 * @param promptTokens tokens of the prompt
 * @param cachedTokens tokens of the prompt that came from the prefix cache
 * @param answerTokens tokens of the answer
 */
public record Result(
        SessionPrompt prompt,
        Outcome outcome,
        String text,
        String reason,
        String message,
        int attempts,
        long time,
        long callMillis,
        int promptTokens,
        int cachedTokens,
        int answerTokens) {
    /** Kinds of results. */
    public enum Outcome {
        /** The model answered. */
        ANSWERED,
        /** A newer version of the session made the answer useless. */
        SUPERSEDED,
        /** The call failed, and Flink calls again. */
        RETRY,
        /** There is no answer. */
        FAILED
    }
}
