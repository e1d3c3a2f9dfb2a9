package inferenceblueprints.endpoint;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Objects;

/**
 * A record that the model must fill, and the value to go on with if it does not. Build it once and share it.
 *
 * <pre>{@code
 * record Intent(@Described("what the shopper wants") Goal goal, double confidence) {}
 * Structure<Intent> INTENT = Structure.of(Intent.class, new Intent(Goal.BROWSE, 0));
 * }</pre>
 *
 * <p>The model first writes an explanation of at most a few words, then the value, so that the explanation can guide it.
 *
 * @param <T> the record
 */
public final class Structure<T extends Record> {
    private static final String EXPLANATION = "explanation";
    private static final String VALUE = "value";

    private final Class<T> type;
    private final T fallback;
    private final boolean explained;
    private final ObjectNode format;

    private Structure(Class<T> type, T fallback, boolean explained) {
        this.type = Objects.requireNonNull(type, "type");
        this.fallback = Objects.requireNonNull(fallback, "fallback");
        this.explained = explained;
        format = Json.MAPPER.createObjectNode().put("type", "json_schema");
        format.putObject("json_schema")
                .put("name", type.getSimpleName())
                .put("strict", true)
                .set("schema", explained ? explained(type) : RecordSchema.of(type));
    }

    private static ObjectNode explained(Class<? extends Record> type) {
        ObjectNode schema = Json.MAPPER.createObjectNode().put("type", "object");
        ObjectNode properties = schema.putObject("properties");
        properties.putObject(EXPLANATION)
                .put("type", "string")
                .put("description", "why this value, in one short sentence");
        properties.set(VALUE, RecordSchema.of(type));
        schema.putArray("required").add(EXPLANATION).add(VALUE);
        return schema.put("additionalProperties", false);
    }

    /**
     * Makes a structure of a record.
     *
     * @param <T> the record
     * @param type the record; its components are strings, booleans, numbers, enums, records, and lists and sets of these
     * @param fallback the value if the model gives no usable answer in time
     * @return the structure
     * @throws IllegalArgumentException if a component has another type, or the record contains itself
     */
    public static <T extends Record> Structure<T> of(Class<T> type, T fallback) {
        return new Structure<>(type, fallback, true);
    }

    /**
     * Asks for the value only, when a few tokens must do. The schema is then that of the record.
     *
     * @return a structure whose decisions have an empty explanation
     */
    public Structure<T> withoutExplanation() {
        return new Structure<>(type, fallback, false);
    }

    /**
     * Returns the JSON Schema that the endpoint gets.
     *
     * @return a copy of the schema
     */
    public JsonNode schema() {
        return format.at("/json_schema/schema").deepCopy();
    }

    ModelRequest asked(ModelRequest request) {
        return request.withField("response_format", format);
    }

    Decision<T> decide(Answer answer) {
        if (answer.isCutOff()) {
            String message = "the answer ended at the limit of tokens: raise withMaxTokens()";
            return fallback(answer, AnswerReader.invalid(message, null));
        }
        try {
            JsonNode whole = Json.MAPPER.readTree(answer.text());
            JsonNode value = explained ? whole.path(VALUE) : whole;
            if (!value.isObject() || explained && !whole.path(EXPLANATION).isTextual()) {
                String missing = explained ? "no explanation and value in: " : "no object: ";
                return fallback(answer, AnswerReader.invalid(missing + answer.text(), null));
            }
            T filled = Json.MAPPER.treeToValue(value, type);
            return new Decision<>(
                    filled,
                    explained ? whole.path(EXPLANATION).textValue() : "",
                    java.util.Optional.of(answer),
                    java.util.Optional.empty());
        } catch (JsonProcessingException wrong) {
            String message = "not a " + type.getSimpleName() + ": " + wrong.getOriginalMessage();
            return fallback(answer, AnswerReader.invalid(message, wrong));
        }
    }

    Decision<T> fallback(Answer answer, EndpointException failure) {
        return new Decision<>(fallback, "", java.util.Optional.ofNullable(answer), java.util.Optional.of(failure));
    }
}
