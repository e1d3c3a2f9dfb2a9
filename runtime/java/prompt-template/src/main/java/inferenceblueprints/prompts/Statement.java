package inferenceblueprints.prompts;

/** A statement of a template. */
@FunctionalInterface
interface Statement {
    void write(Scope scope);
}
