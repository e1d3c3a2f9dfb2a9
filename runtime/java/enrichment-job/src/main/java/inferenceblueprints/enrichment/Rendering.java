package inferenceblueprints.enrichment;

import java.util.Map;

/** Renders the part of a prompt that a template describes. */
@FunctionalInterface
interface Rendering {
    /** Returns the text; the values are {@code events} and {@code session}. */
    String render(Map<String, Object> values) throws Failure;

    /** No text can be rendered. */
    final class Failure extends Exception {
        private static final long serialVersionUID = 1L;

        Failure(String message) {
            super(message);
        }
    }
}
