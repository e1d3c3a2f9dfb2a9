package inferenceblueprints.endpoint;

/**
 * Tokens of a call, as the endpoint counted them.
 *
 * @param promptTokens tokens of the prompt
 * @param cachedTokens tokens of the prompt that came from the prefix cache; 0 if the endpoint does not say
 * @param answerTokens tokens of the answer
 */
public record Usage(int promptTokens, int cachedTokens, int answerTokens) {
    /** No tokens: the endpoint did not count them. */
    public static final Usage UNKNOWN = new Usage(0, 0, 0);
}
