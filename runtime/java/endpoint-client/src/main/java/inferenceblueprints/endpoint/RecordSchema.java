package inferenceblueprints.endpoint;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Makes the JSON Schema of a record. It uses only what structured output of engines supports: objects with fixed keys,
 * arrays, strings, enumerations, numbers and booleans; every component is required.
 */
final class RecordSchema {
    private static final Map<Class<?>, String> SIMPLE = Map.ofEntries(
            Map.entry(String.class, "string"),
            Map.entry(boolean.class, "boolean"),
            Map.entry(Boolean.class, "boolean"),
            Map.entry(short.class, "integer"),
            Map.entry(Short.class, "integer"),
            Map.entry(int.class, "integer"),
            Map.entry(Integer.class, "integer"),
            Map.entry(long.class, "integer"),
            Map.entry(Long.class, "integer"),
            Map.entry(BigInteger.class, "integer"),
            Map.entry(float.class, "number"),
            Map.entry(Float.class, "number"),
            Map.entry(double.class, "number"),
            Map.entry(Double.class, "number"),
            Map.entry(BigDecimal.class, "number"));

    private final Deque<Class<?>> inside = new ArrayDeque<>();

    private RecordSchema() {}

    static ObjectNode of(Class<? extends Record> type) {
        return new RecordSchema().object(type);
    }

    private ObjectNode object(Class<?> type) {
        if (inside.contains(type)) {
            throw new IllegalArgumentException(type.getName() + " contains itself: a schema of finite size needs a list"
                    + " of another record");
        }
        inside.push(type);
        ObjectNode schema = described(Json.MAPPER.createObjectNode().put("type", "object"), type);
        ObjectNode properties = schema.putObject("properties");
        ArrayNode required = schema.putArray("required");
        for (RecordComponent each : type.getRecordComponents()) {
            String where = type.getSimpleName() + "." + each.getName();
            properties.set(each.getName(), described(schema(each.getGenericType(), where), each));
            required.add(each.getName());
        }
        inside.pop();
        return schema.put("additionalProperties", false);
    }

    private static ObjectNode described(ObjectNode schema, AnnotatedElement element) {
        Described description = element.getAnnotation(Described.class);
        return description == null ? schema : schema.put("description", description.value());
    }

    private ObjectNode schema(Type type, String where) {
        if (type instanceof ParameterizedType generic
                && (generic.getRawType() == List.class || generic.getRawType() == Set.class)) {
            ObjectNode array = Json.MAPPER.createObjectNode().put("type", "array");
            array.set("items", schema(generic.getActualTypeArguments()[0], where));
            return array;
        }
        if (type instanceof Class<?> plain) {
            if (plain.isRecord()) {
                return object(plain);
            }
            if (plain.isEnum()) {
                ObjectNode choice = Json.MAPPER.createObjectNode().put("type", "string");
                ArrayNode names = choice.putArray("enum");
                for (Object constant : plain.getEnumConstants()) {
                    names.add(Json.MAPPER.<com.fasterxml.jackson.databind.JsonNode>valueToTree(constant).asText());
                }
                return choice;
            }
            if (SIMPLE.containsKey(plain)) {
                return Json.MAPPER.createObjectNode().put("type", SIMPLE.get(plain));
            }
        }
        throw new IllegalArgumentException(where + ": got " + type.getTypeName()
                + ", must be a String, boolean, whole number, floating-point number, BigDecimal, enum, record, or a List or"
                + " Set of these");
    }
}
