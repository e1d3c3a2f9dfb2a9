package inferenceblueprints.endpoint;

import java.util.Optional;

/**
 * A typed answer that a program can act on. There is always a value: the model's, or the fallback.
 *
 * @param <T> type of the value
 * @param value the model's value, or the fallback
 * @param explanation the model's reason in its own words, for people; empty with a fallback
 * @param answer the whole answer, if one came; present with a fallback too if the answer had a wrong structure
 * @param failure why the value is the fallback; empty if the value is the model's
 */
public record Decision<T>(
        T value, String explanation, Optional<Answer> answer, Optional<EndpointException> failure) {
    /**
     * Tells whether the value is the fallback.
     *
     * @return true if the model gave no usable answer
     */
    public boolean isFallback() {
        return failure.isPresent();
    }
}
