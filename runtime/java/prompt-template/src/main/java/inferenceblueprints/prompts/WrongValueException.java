package inferenceblueprints.prompts;

/** A value does not fit; the line of the template is added where the exception is caught. */
final class WrongValueException extends RuntimeException {
    private static final long serialVersionUID = 1;

    WrongValueException(String reason) {
        super(reason, null, false, false);
    }
}
