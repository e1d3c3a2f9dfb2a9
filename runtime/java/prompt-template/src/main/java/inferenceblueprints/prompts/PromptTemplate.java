package inferenceblueprints.prompts;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A template that turns values into a prompt. It does not change, so threads may share it.
 *
 * <p>What it costs is bounded: the length of the prompt, the rounds of its loops (100,000, as in Python) and the steps of a rendering
 * (5 million).
 */
public final class PromptTemplate {
    private final String source;
    private final List<Statement> body;
    private final int mostCharacters;

    private PromptTemplate(String source, List<Statement> body, int mostCharacters) {
        this.source = source;
        this.body = body;
        this.mostCharacters = mostCharacters;
    }

    /**
     * Reads a template.
     *
     * @param tree what Python's {@code template_tree} returned
     * @param mostCharacters the most characters (code points) of a prompt
     * @return the template
     * @throws PromptTemplateException if it is not such a tree
     */
    public static PromptTemplate of(JsonNode tree, int mostCharacters) {
        if (!tree.path("body").isArray()) {
            throw new PromptTemplateException("a template is an object with `source` and `body`, which Python's template_tree returns");
        }
        return new PromptTemplate(tree.path("source").asText(), new TreeReader().statements(tree.get("body")), mostCharacters);
    }

    /**
     * Renders a prompt.
     *
     * @param values the variables of the template: strings, numbers, booleans, null, lists and maps with strings as keys; the variable
     *     {@code row} has all of them
     * @return the prompt
     * @throws PromptTemplateException if the template does not fit the values, or costs too much
     */
    public String render(Map<String, ?> values) {
        Map<String, Object> variables = new LinkedHashMap<>();
        Object row = Values.of(values, 0);
        variables.put("row", row);
        Values.mapping(row).forEach(variables::put);
        Rendering rendering = new Rendering(mostCharacters);
        Scope scope = new Scope(rendering, null, variables);
        try {
            for (Statement statement : body) {
                statement.write(scope);
            }
        } catch (StackOverflowError error) {
            throw new PromptTemplateException("values are nested too deeply", error);
        }
        return rendering.prompt();
    }

    /**
     * Returns the text from which Python made the template.
     *
     * @return the text
     */
    public String source() {
        return source;
    }

    @Override
    public String toString() {
        return source;
    }
}
