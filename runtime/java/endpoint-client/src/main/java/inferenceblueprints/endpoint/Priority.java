package inferenceblueprints.endpoint;

/** Who goes first when interactive and batch requests share workers. */
public enum Priority {
    /** A user or a service waits for the answer. */
    INTERACTIVE,
    /** The request may wait until a worker processes no prompt. */
    BATCH
}
