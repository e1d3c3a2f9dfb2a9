package inferenceblueprints.endpoint;

import com.fasterxml.jackson.databind.JsonNode;

/**
 * A complete answer.
 *
 * @param text the text of the first choice; empty if the model answered with tool calls only
 * @param finishReason why the model ended, for example {@code stop} or {@code length}; empty if the endpoint does not say
 * @param usage tokens of the call
 * @param model the model that answered, as the endpoint names it
 * @param body the whole JSON answer; of a stream, its last event
 */
public record Answer(String text, String finishReason, Usage usage, String model, JsonNode body) {
    /**
     * Tells whether the model ran into the limit of tokens, so that the text may end in the middle.
     *
     * @return true if the finish reason is {@code length}
     */
    public boolean isCutOff() {
        return "length".equals(finishReason);
    }
}
