package inferenceblueprints.signals;

/** A name or key that cannot exist, or a stored record that is not a signal. */
public final class InvalidSignalException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    InvalidSignalException(String message) {
        super(message);
    }

    InvalidSignalException(String message, Throwable cause) {
        super(message, cause);
    }
}
