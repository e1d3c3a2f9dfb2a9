package inferenceblueprints.enrichment;

/** Compiles the template of a prompt. */
final class Templates {
    private Templates() {}

    static Rendering rendering(JobConfiguration.Prompt prompt) {
        return values -> String.valueOf(values.get("events"));
    }
}
