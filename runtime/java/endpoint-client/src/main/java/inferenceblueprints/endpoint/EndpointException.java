package inferenceblueprints.endpoint;

import java.time.Duration;
import java.util.Optional;

/** A call without an answer. {@link #reason()} says what happened, and whether to try again later. */
public final class EndpointException extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private static final int LONGEST_DETAIL = 500;

    /** What happened to a call. */
    public enum Reason {
        /** As many calls as allowed are in flight: nothing was sent. Send fewer calls, or raise {@code maxInFlight}. */
        TOO_MANY_IN_FLIGHT,
        /** The endpoint failed too often in the last seconds: nothing was sent. Try again after {@code retryAfter}. */
        CIRCUIT_OPEN,
        /** The deadline passed. The request was cancelled and its connection closed. */
        DEADLINE,
        /** No connection, or it broke before the answer was complete. */
        CONNECTION,
        /** The endpoint is overloaded or unavailable: status 408, 429, 502, 503 or 504. */
        UNAVAILABLE,
        /** The endpoint refused the request: any other status, such as 400 or 401. Repeating it does not help. */
        REFUSED,
        /** The answer is not valid: no JSON, a missing field, too long, or not the requested structure. */
        INVALID_ANSWER,
        /** The caller cancelled the call. */
        CANCELLED,
        /** The client is closed. */
        CLOSED
    }

    /** What the message says after the reason. */
    private final String words;
    /** What happened. */
    private final Reason reason;
    /** Status of the answer, or 0. */
    private final int status;
    /** The endpoint's code of the refusal; empty for none. */
    private final String code;
    /** Time to wait, or null. */
    private final transient Duration retryAfter;

    private EndpointException(
            Reason reason, String message, int status, String code, Duration retryAfter, Throwable cause) {
        super(reason + ": " + message, cause);
        this.words = message;
        this.reason = reason;
        this.status = status;
        this.code = code;
        this.retryAfter = retryAfter;
    }

    static EndpointException of(Reason reason, String message) {
        return of(reason, message, null);
    }

    static EndpointException of(Reason reason, String message, Throwable cause) {
        return new EndpointException(reason, message, 0, "", null, cause);
    }

    static EndpointException circuitOpen(String message, Duration remaining, Throwable cause) {
        return new EndpointException(Reason.CIRCUIT_OPEN, message, 0, "", remaining, cause);
    }

    static EndpointException status(int status, String detail, String code, Duration retryAfter) {
        boolean passing = status == 408 || status == 429 || status == 502 || status == 503 || status == 504;
        String message = "the endpoint answered " + status + (detail.isBlank() ? "" : ": " + shorten(detail));
        return new EndpointException(
                passing ? Reason.UNAVAILABLE : Reason.REFUSED, message, status, code, retryAfter, null);
    }

    /** Returns the same failure with the stack of this thread, which shows the caller's line. */
    EndpointException onThisThread() {
        return new EndpointException(reason, words, status, code, retryAfter, this);
    }

    static String shorten(String text) {
        String line = text.replaceAll("\\s+", " ").strip();
        return line.length() <= LONGEST_DETAIL ? line : line.substring(0, LONGEST_DETAIL) + "…";
    }

    /**
     * Returns what happened.
     *
     * @return the reason
     */
    public Reason reason() {
        return reason;
    }

    /**
     * Returns the status of the HTTP answer.
     *
     * @return the status, or 0 if there was no answer
     */
    public int status() {
        return status;
    }

    /**
     * Returns the endpoint's own name of a refusal, which OpenAI's API calls {@code code}, such as
     * {@code insufficient_quota}. Two refusals with the same status may have different codes.
     *
     * @return the code, or empty if the answer has none
     */
    public Optional<String> code() {
        return code.isEmpty() ? Optional.empty() : Optional.of(code);
    }

    /**
     * Returns how long the endpoint, or the open circuit breaker, asks callers to wait.
     *
     * @return the time to wait, or empty if nobody said it
     */
    public Optional<Duration> retryAfter() {
        return Optional.ofNullable(retryAfter);
    }

    /**
     * Tells whether the same request can succeed later.
     *
     * @return true unless the request or the answer is wrong, the caller cancelled the call, or the client is closed
     */
    public boolean isTransient() {
        return switch (reason) {
            case TOO_MANY_IN_FLIGHT, CIRCUIT_OPEN, DEADLINE, CONNECTION, UNAVAILABLE -> true;
            case REFUSED, INVALID_ANSWER, CANCELLED, CLOSED -> false;
        };
    }
}
