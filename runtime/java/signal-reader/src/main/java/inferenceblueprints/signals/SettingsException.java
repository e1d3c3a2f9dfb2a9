package inferenceblueprints.signals;

/** Settings of the connection are missing or wrong. One message names all of them. */
public final class SettingsException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    SettingsException(String message) {
        super(message);
    }
}
