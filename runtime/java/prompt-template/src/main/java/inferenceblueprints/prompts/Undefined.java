package inferenceblueprints.prompts;

/** A variable or an item that does not exist. Only {@code is defined} and {@code default} may see it. */
record Undefined(String reason) {
    WrongValueException wrong() {
        return new WrongValueException(reason);
    }
}
