package inferenceblueprints.prompts;

/** An expression of a template. */
@FunctionalInterface
interface Expression {
    Object value(Scope scope);
}
