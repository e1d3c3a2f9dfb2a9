package inferenceblueprints.endpoint;

import java.net.URI;
import java.time.Duration;
import java.util.Optional;
import java.util.function.BiConsumer;

/**
 * Hears about every call, for metrics and traces. Methods run on the threads of calls and must not block. An exception
 * from a listener is logged and changes no call.
 */
public interface CallListener {
    /**
     * A call begins.
     *
     * @param start what is called
     * @return hears what happens to the call
     */
    Observation begin(Start start);

    /**
     * A structured call returned its fallback value.
     *
     * @param start what was called
     * @param failure why there is no answer
     */
    default void fallback(Start start, EndpointException failure) {}

    /** Hears what happens to one call. */
    interface Observation {
        /**
         * A request is about to be sent.
         *
         * @param number 1 for the first request of the call, then counting up
         * @param hedge whether it runs beside an earlier request that has not answered yet
         * @param header adds a header, such as {@code traceparent}
         */
        default void attempt(int number, boolean hedge, BiConsumer<String, String> header) {}

        /**
         * The call ended.
         *
         * @param end how it ended
         */
        void end(End end);
    }

    /**
     * What a call asks for.
     *
     * @param operation {@code chat} or {@code text_completion}, as in OpenTelemetry's conventions
     * @param model name of the model
     * @param endpoint address of the endpoint
     * @param streamed whether the answer is streamed
     */
    record Start(String operation, String model, URI endpoint, boolean streamed) {}

    /**
     * How a call ended. Exactly one of answer and failure is present.
     *
     * @param duration from the call to its end
     * @param firstByte from the call to the first byte of the answer, if one came
     * @param attempts requests that were sent, with retries and hedges
     * @param hedges requests that ran beside an earlier one
     * @param answer the answer
     * @param failure why there is none
     */
    record End(
            Duration duration,
            Optional<Duration> firstByte,
            int attempts,
            int hedges,
            Optional<Answer> answer,
            Optional<EndpointException> failure) {
        /**
         * Returns the outcome as one word, for a label of a metric.
         *
         * @return {@code answered}, or the reason of the failure in lower case
         */
        public String outcome() {
            return failure.map(each -> each.reason().name().toLowerCase(java.util.Locale.ROOT)).orElse("answered");
        }
    }
}
