package inferenceblueprints.signals;

/** The store gave no answer. Repeating the read is safe. */
public final class StoreException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** What happened. */
    public enum Reason {
        /** The store does not answer, or not in time. */
        UNREACHABLE,
        /** The store rejects the user or its token, or the user lacks a permission. */
        REFUSED,
        /** The store answered with another error. */
        FAILED
    }

    /** What happened. */
    private final Reason reason;

    StoreException(Reason reason, String message, Throwable cause) {
        super(reason + ": " + message, cause);
        this.reason = reason;
    }

    /**
     * Returns what happened.
     *
     * @return the reason
     */
    public Reason reason() {
        return reason;
    }
}
