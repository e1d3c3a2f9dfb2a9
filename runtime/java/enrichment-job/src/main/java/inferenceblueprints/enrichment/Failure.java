package inferenceblueprints.enrichment;

import inferenceblueprints.endpoint.EndpointException;
import java.time.Duration;
import java.util.Objects;

/**
 * What a call without an answer means for its version.
 *
 * @param kind what to do
 * @param reason reason of the dead letter, if it becomes one
 * @param message what happened, for people
 * @param pauseMillis for how long not to ask again
 */
record Failure(Kind kind, String reason, String message, long pauseMillis) {
    /** What to do after a failure. */
    enum Kind {
        /** Nothing: it would happen again. */
        FINAL,
        /** Ask again. Others may be answered meanwhile. */
        SLOW,
        /** Ask again. */
        PASSING,
        /** Keep the version until somebody has changed something: its prompt is not the cause. */
        WAITING
    }

    /** The code of a front door for a team, a project, a key or a model that may spend no more today or this month. */
    private static final String SPENT = "insufficient_quota";

    private static final int UNAUTHORIZED = 401;
    /**
     * The door asks to wait until the next day or month. Somebody may raise the budget before, and what is reserved for other
     * requests comes back.
     */
    private static final long LONGEST_PAUSE_WHEN_SPENT = 10_000;

    private static final long PAUSE_WITHOUT_KEY = 1_000;

    /** Returns what a failure means. */
    static Failure of(Throwable error, boolean behindDoor) {
        String message = Objects.requireNonNullElse(error.getMessage(), error.toString());
        if (error instanceof DoorKey.MissingException) {
            return new Failure(Kind.WAITING, "endpoint", message, PAUSE_WITHOUT_KEY);
        }
        if (!(error instanceof EndpointException failure)) {
            return new Failure(Kind.FINAL, "endpoint", message, 0);
        }
        long asked = failure.retryAfter().map(Duration::toMillis).orElse(0L);
        if (behindDoor && failure.code().filter(SPENT::equals).isPresent()) {
            return new Failure(Kind.WAITING, "budget", message, Math.min(asked, LONGEST_PAUSE_WHEN_SPENT));
        }
        if (behindDoor && failure.status() == UNAUTHORIZED) {
            return new Failure(Kind.WAITING, "endpoint", message, asked);
        }
        return new Failure(kind(failure), reason(failure), message, asked);
    }

    private static Kind kind(EndpointException failure) {
        if (!failure.isTransient()) {
            return Kind.FINAL;
        }
        return failure.reason() == EndpointException.Reason.DEADLINE ? Kind.SLOW : Kind.PASSING;
    }

    private static String reason(EndpointException failure) {
        return switch (failure.reason()) {
            case DEADLINE -> "timeout";
            case INVALID_ANSWER -> "answer";
            default -> "endpoint";
        };
    }
}
