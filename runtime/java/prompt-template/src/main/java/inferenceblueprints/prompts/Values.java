package inferenceblueprints.prompts;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Values as Python sees them. They are null, Boolean, BigInteger, Double, String, List, Tuple, Map with strings as keys, and
 * Undefined.
 */
final class Values {
    private static final int MOST_DEPTH = 200;

    private Values() {}

    /** Returns a caller's value as one of the types of this class. */
    static Object of(Object value, int depth) {
        if (depth > MOST_DEPTH) {
            throw new PromptTemplateException("values are nested more than " + MOST_DEPTH + " levels deep");
        }
        if (value == null || value instanceof String || value instanceof Boolean || value instanceof BigInteger || value instanceof Double) {
            return value;
        }
        if (value instanceof Integer || value instanceof Long || value instanceof Short || value instanceof Byte) {
            return BigInteger.valueOf(((Number) value).longValue());
        }
        if (value instanceof Float || value instanceof BigDecimal) {
            return ((Number) value).doubleValue();
        }
        if (value instanceof Collection<?> items) {
            List<Object> list = new ArrayList<>(items.size());
            items.forEach(item -> list.add(of(item, depth + 1)));
            return list;
        }
        if (value instanceof Map<?, ?> map) {
            Map<String, Object> mapping = new LinkedHashMap<>();
            map.forEach((key, item) -> mapping.put(key(key), of(item, depth + 1)));
            return mapping;
        }
        throw new PromptTemplateException("a value is a " + value.getClass().getName()
                + "; allowed are strings, numbers, booleans, null, collections and maps");
    }

    private static String key(Object key) {
        if (key instanceof String text) {
            return text;
        }
        throw new PromptTemplateException("the key " + key + " of a map is not a string");
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> mapping(Object value) {
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    static List<Object> list(Object value) {
        return value instanceof Tuple tuple ? tuple.items() : (List<Object>) value;
    }

    static boolean isSequence(Object value) {
        return value instanceof List || value instanceof Tuple;
    }

    static String type(Object value) {
        return value == null ? "none"
                : value instanceof Boolean ? "boolean"
                : value instanceof BigInteger ? "whole number"
                : value instanceof Double ? "number"
                : value instanceof String ? "string"
                : value instanceof Map ? "mapping"
                : value instanceof Tuple ? "tuple"
                : "list";
    }

    /** Returns a value, unless it does not exist. */
    static Object defined(Object value) {
        if (value instanceof Undefined undefined) {
            throw undefined.wrong();
        }
        return value;
    }

    static boolean truth(Object value) {
        defined(value);
        return value != null && !Boolean.FALSE.equals(value) && !"".equals(value) && !BigInteger.ZERO.equals(value)
                && !(value instanceof Double number && number == 0) && !(value instanceof Map<?, ?> map && map.isEmpty())
                && !(isSequence(value) && list(value).isEmpty());
    }

    static boolean equal(Rendering rendering, Object left, Object right) {
        rendering.step();
        defined(left);
        defined(right);
        if (Numbers.isNumber(left) && Numbers.isNumber(right)) {
            Integer order = Numbers.compare(left, right);
            return order != null && order == 0;
        }
        if (left instanceof List && right instanceof List || left instanceof Tuple && right instanceof Tuple) {
            List<Object> a = list(left);
            List<Object> b = list(right);
            return a.size() == b.size() && firstDifference(rendering, a, b) == a.size();
        }
        if (left instanceof Map && right instanceof Map) {
            Map<String, Object> b = mapping(right);
            return mapping(left).size() == b.size() && mapping(left).entrySet().stream().allMatch(
                    entry -> b.containsKey(entry.getKey()) && equal(rendering, entry.getValue(), b.get(entry.getKey())));
        }
        return !isSequence(left) && !(left instanceof Map) && Objects.equals(left, right);
    }

    private static int firstDifference(Rendering rendering, List<Object> left, List<Object> right) {
        int at = 0;
        // One object is always equal to itself, as in Python, even if it is not a number.
        while (at < Math.min(left.size(), right.size()) && (left.get(at) == right.get(at) && !(left.get(at) instanceof Undefined)
                || equal(rendering, left.get(at), right.get(at)))) {
            at++;
        }
        return at;
    }

    /** Tells whether {@code left operator right}, for {@code <}, {@code <=}, {@code >} and {@code >=}. */
    static boolean ordered(Rendering rendering, String operator, Object left, Object right) {
        rendering.step();
        defined(left);
        defined(right);
        Integer order = null;
        boolean comparable = true;
        if (Numbers.isNumber(left) && Numbers.isNumber(right)) {
            order = Numbers.compare(left, right);
        } else if (left instanceof String a && right instanceof String b) {
            order = Texts.compare(a, b);
        } else if (left instanceof List && right instanceof List || left instanceof Tuple && right instanceof Tuple) {
            List<Object> a = list(left);
            List<Object> b = list(right);
            int at = firstDifference(rendering, a, b);
            if (at < a.size() && at < b.size()) {
                return ordered(rendering, operator, a.get(at), b.get(at));
            }
            order = Integer.compare(a.size(), b.size());
        } else {
            comparable = false;
        }
        if (!comparable) {
            throw new WrongValueException("'" + operator + "' does not compare a " + type(left) + " with a " + type(right));
        }
        return order != null && switch (operator) {
            case "<" -> order < 0;
            case "<=" -> order <= 0;
            case ">" -> order > 0;
            default -> order >= 0;
        };
    }

    static int compare(Rendering rendering, Object left, Object right) {
        return ordered(rendering, "<", left, right) ? -1 : ordered(rendering, "<", right, left) ? 1 : 0;
    }

    static boolean contains(Rendering rendering, Object container, Object item) {
        defined(container);
        if (container instanceof String text) {
            if (defined(item) instanceof String part) {
                return text.contains(part);
            }
            throw new WrongValueException("only a string can be in a string, not a " + type(item));
        }
        if (container instanceof Map) {
            if (isSequence(defined(item)) && !(item instanceof Tuple) || item instanceof Map) {
                throw new WrongValueException("a " + type(item) + " is not a key of a mapping");
            }
            return item instanceof String && mapping(container).containsKey(item);
        }
        for (Object each : items(container)) {
            if (equal(rendering, each, item)) {
                return true;
            }
        }
        return false;
    }

    /** Returns what a loop over a value sees. */
    static List<Object> items(Object value) {
        if (defined(value) instanceof String text) {
            return Texts.characters(text);
        }
        if (value instanceof Map) {
            return new ArrayList<>(mapping(value).keySet());
        }
        if (isSequence(value)) {
            return list(value);
        }
        throw new WrongValueException("a " + type(value) + " cannot be looped over");
    }

    static int length(Object value) {
        if (defined(value) instanceof String text) {
            return Texts.length(text);
        }
        return items(value).size();
    }

    /** Returns an item of a value, or that it does not exist. */
    static Object item(Object value, Object key) {
        if (defined(value) instanceof Map && key instanceof String name && mapping(value).containsKey(name)) {
            return mapping(value).get(name);
        }
        if ((value instanceof String || isSequence(value)) && Numbers.number(key) instanceof BigInteger at) {
            List<Object> items = items(value);
            int index = at.signum() < 0 ? clamped(at.add(BigInteger.valueOf(items.size()))) : clamped(at);
            if (index >= 0 && index < items.size()) {
                return items.get(index);
            }
            return new Undefined("the " + type(value) + " has no element " + at);
        }
        return new Undefined("the " + type(value) + " has no attribute " + (key instanceof Undefined ? "undefined" : repr(key)));
    }

    static Object slice(Object value, Object start, Object stop, Object step) {
        if (!(defined(value) instanceof String) && !isSequence(value)) {
            throw new WrongValueException("a " + type(value) + " has no slices");
        }
        List<Object> items = items(value);
        int by = step == null ? 1 : clamped(index(step));
        if (by == 0) {
            throw new WrongValueException("the step of a slice cannot be 0");
        }
        int size = items.size();
        int low = by > 0 ? 0 : -1;
        int high = by > 0 ? size : size - 1;
        int begin = start == null ? (by > 0 ? low : high) : bound(index(start), size, low, high);
        int end = stop == null ? (by > 0 ? high : low) : bound(index(stop), size, low, high);
        List<Object> found = new ArrayList<>();
        for (long at = begin; by > 0 ? at < end : at > end; at += by) {
            found.add(items.get((int) at));
        }
        if (value instanceof String) {
            StringBuilder text = new StringBuilder();
            found.forEach(text::append);
            return text.toString();
        }
        return value instanceof Tuple ? new Tuple(found) : found;
    }

    private static BigInteger index(Object value) {
        if (Numbers.number(defined(value)) instanceof BigInteger index) {
            return index;
        }
        throw new WrongValueException("the bounds of a slice are whole numbers, not a " + type(value));
    }

    private static int bound(BigInteger index, int size, int low, int high) {
        int at = clamped(index.signum() < 0 ? index.add(BigInteger.valueOf(size)) : index);
        return Math.max(low, Math.min(high, at));
    }

    private static int clamped(BigInteger number) {
        return number.bitLength() < 31 ? number.intValue() : number.signum() < 0 ? -Integer.MAX_VALUE : Integer.MAX_VALUE;
    }

    /** Returns a value as Python's {@code str} does. */
    static String text(Rendering rendering, Object value) {
        if (defined(value) instanceof String text) {
            return text;
        }
        StringBuilder text = new StringBuilder();
        repr(rendering, value, text);
        return text.toString();
    }

    private static String repr(Object value) {
        return value instanceof String text ? Texts.quoted(text) : text(new Rendering(Integer.MAX_VALUE), value);
    }

    private static void repr(Rendering rendering, Object value, StringBuilder text) {
        if (value == null) {
            text.append("None");
        } else if (value instanceof Boolean truth) {
            text.append(truth ? "True" : "False");
        } else if (value instanceof BigInteger) {
            text.append(value);
        } else if (value instanceof Double number) {
            text.append(Numbers.text(number));
        } else if (value instanceof String string) {
            text.append(Texts.quoted(string));
        } else if (value instanceof Undefined) {
            text.append("Undefined");
        } else if (value instanceof Map) {
            text.append('{');
            String between = "";
            for (Map.Entry<String, Object> entry : mapping(value).entrySet()) {
                text.append(between).append(Texts.quoted(entry.getKey())).append(": ");
                repr(rendering, entry.getValue(), text);
                between = ", ";
            }
            text.append('}');
        } else {
            text.append(value instanceof Tuple ? '(' : '[');
            String between = "";
            for (Object item : list(value)) {
                text.append(between);
                repr(rendering, item, text);
                between = ", ";
            }
            text.append(value instanceof Tuple ? list(value).size() == 1 ? ",)" : ")" : "]");
        }
        bound(rendering, text);
    }

    /** Refuses text that is too long, before values that contain each other's copies make it huge. */
    static void bound(Rendering rendering, StringBuilder text) {
        rendering.step();
        if (text.length() > 4L * rendering.mostCharacters()) {
            throw new WrongValueException("the text of a value is longer than " + 4L * rendering.mostCharacters() + " characters");
        }
    }
}
