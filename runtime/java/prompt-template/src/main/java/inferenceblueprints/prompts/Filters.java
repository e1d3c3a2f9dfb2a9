package inferenceblueprints.prompts;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;

/** The filters of templates. Names, arguments and results are those of Jinja2, but lists stand where Jinja2 has generators. */
final class Filters {
    private static final int MOST_PRECISION = 30;
    private static final int MOST_INDENT = 16;
    private static final Set<Integer> BASES = Set.of(2, 8, 10, 16);

    private final Rendering rendering;

    Filters(Rendering rendering) {
        this.rendering = rendering;
    }

    Object filter(String name, Object value, Arguments arguments) {
        rendering.step();
        return switch (name) {
            case "abs", "capitalize", "count", "first", "items", "last", "length", "list", "lower", "reverse", "string", "title", "upper",
                    "wordcount" -> {
                arguments.bound();
                yield simple(name, value);
            }
            case "d", "default" -> {
                Object[] given = arguments.bound("default_value", "boolean");
                boolean replaced = value instanceof Undefined || given[1] != null && Values.truth(given[1]) && !Values.truth(value);
                yield !replaced ? value : arguments.has(0, "default_value") ? given[0] : "";
            }
            case "dictsort" -> dictsort(value, arguments);
            case "float" -> Numbers.toDouble(Values.defined(value), given(arguments, 0, "default", 0.0, arguments.bound("default")[0]));
            case "int" -> {
                Object[] given = arguments.bound("default", "base");
                int base = whole(arguments, 1, "base", given[1], 10);
                if (!BASES.contains(base)) {
                    throw new WrongValueException("int reads numbers of base 2, 8, 10, 16");
                }
                yield Numbers.toWhole(Values.defined(value), given(arguments, 0, "default", BigInteger.ZERO, given[0]), base);
            }
            case "join" -> join(value, arguments);
            case "map" -> map(value, arguments);
            case "max", "min" -> extreme(name.equals("max"), value, arguments);
            case "reject" -> select(value, arguments, false, false);
            case "rejectattr" -> select(value, arguments, true, false);
            case "select" -> select(value, arguments, false, true);
            case "selectattr" -> select(value, arguments, true, true);
            case "replace" -> replace(value, arguments);
            case "round" -> round(value, arguments);
            case "sort" -> sort(value, arguments);
            case "sum" -> sum(value, arguments);
            case "tojson" -> {
                Object[] given = arguments.bound("indent");
                int indent = given[0] == null ? -1 : whole(arguments, 0, "indent", given[0], 0);
                if (given[0] != null && (indent < 0 || indent > MOST_INDENT)) {
                    throw new WrongValueException("tojson indents by at most " + MOST_INDENT + " spaces");
                }
                yield JsonText.of(rendering, value, indent);
            }
            case "trim" -> {
                Object[] given = arguments.bound("chars");
                yield Texts.strip(text(value), given[0] == null ? null : string("trim", given[0]));
            }
            case "truncate" -> truncate(value, arguments);
            case "unique" -> unique(value, arguments);
            default -> throw new WrongValueException("No filter named '" + name + "'.");
        };
    }

    private Object simple(String name, Object value) {
        return switch (name) {
            case "abs" -> {
                if (!Numbers.isNumber(Values.defined(value))) {
                    throw new WrongValueException("abs is only for numbers");
                }
                yield Numbers.number(value) instanceof BigInteger whole ? whole.abs() : (Object) Math.abs((Double) value);
            }
            case "capitalize" -> Texts.capitalized(text(value));
            case "count", "length" -> BigInteger.valueOf(Values.length(value));
            case "first", "last" -> {
                List<Object> items = items(value);
                yield items.isEmpty()
                        ? new Undefined("there is no " + name + " item: the sequence is empty")
                        : items.get(name.equals("first") ? 0 : items.size() - 1);
            }
            case "items" -> pairs(value);
            case "list" -> new ArrayList<>(items(value));
            case "lower" -> Texts.lower(text(value));
            case "reverse" -> {
                if (value instanceof String text) {
                    yield Texts.reversed(text);
                }
                List<Object> reversed = new ArrayList<>(items(value));
                Collections.reverse(reversed);
                yield reversed;
            }
            case "string" -> text(value);
            case "title" -> Texts.title(text(value));
            case "upper" -> Texts.upper(text(value));
            default -> BigInteger.valueOf(Texts.words(text(value)));
        };
    }

    private String text(Object value) {
        return Values.text(rendering, value);
    }

    private List<Object> items(Object value) {
        List<Object> items = Values.items(value);
        rendering.steps(items.size());
        return items;
    }

    private static String string(String filter, Object value) {
        if (Values.defined(value) instanceof String text) {
            return text;
        }
        throw new WrongValueException(filter + " is only for strings, not for a " + Values.type(value));
    }

    private static Object given(Arguments arguments, int position, String name, Object otherwise, Object value) {
        return arguments.has(position, name) ? value : otherwise;
    }

    private static int whole(Arguments arguments, int position, String name, Object value, int otherwise) {
        if (!arguments.has(position, name)) {
            return otherwise;
        }
        if (Numbers.number(Values.defined(value)) instanceof BigInteger whole && whole.bitLength() < 31) {
            return whole.intValue();
        }
        throw new WrongValueException("its argument " + name + " must be a whole number, not a " + Values.type(value));
    }

    private static boolean truth(Object value) {
        return value != null && Values.truth(value);
    }

    private List<Object> pairs(Object value) {
        List<Object> pairs = new ArrayList<>();
        if (value instanceof Map) {
            rendering.steps(Values.mapping(value).size());
            Values.mapping(value).forEach((key, item) -> pairs.add(new Tuple(Arrays.asList(key, item))));
        } else if (!(value instanceof Undefined)) {
            throw new WrongValueException("only a mapping has items, not a " + Values.type(value));
        }
        return pairs;
    }

    private Object dictsort(Object value, Arguments arguments) {
        Object[] given = arguments.bound("case_sensitive", "by", "reverse");
        Object by = given(arguments, 1, "by", "key", given[1]);
        if (!"key".equals(by) && !"value".equals(by)) {
            throw new WrongValueException("dictsort sorts by key or value");
        }
        List<Object> pairs = pairs(Values.defined(value));
        int position = by.equals("key") ? 0 : 1;
        boolean ignored = !truth(given[0]);
        pairs.sort(order(pair -> folded(((Tuple) pair).items().get(position), ignored), truth(given[2])));
        return pairs;
    }

    private Comparator<Object> order(UnaryOperator<Object> key, boolean reverse) {
        return (left, right) -> reverse
                ? Values.compare(rendering, key.apply(right), key.apply(left))
                : Values.compare(rendering, key.apply(left), key.apply(right));
    }

    private static Object folded(Object value, boolean ignored) {
        return ignored && value instanceof String text ? Texts.lower(text) : value;
    }

    /** Returns what reads an attribute such as {@code a.b.0} of an item. */
    private UnaryOperator<Object> attribute(Object attribute) {
        return attribute(attribute, null);
    }

    /** With a default for what is missing. Jinja2 goes on from the default if the path goes on, so this does too. */
    private UnaryOperator<Object> attribute(Object attribute, Object otherwise) {
        List<Object> parts = new ArrayList<>();
        if (attribute instanceof String path) {
            for (String part : path.split("\\.", -1)) {
                parts.add(!part.isEmpty() && part.codePoints().allMatch(Character::isDigit) ? new BigInteger(part) : part);
            }
        } else if (attribute != null) {
            parts.add(attribute);
        }
        return item -> {
            Object found = item;
            for (Object part : parts) {
                rendering.step();
                found = Values.item(found, part);
                found = otherwise != null && found instanceof Undefined ? otherwise : found;
            }
            return found;
        };
    }

    private Object join(Object value, Arguments arguments) {
        Object given = given(arguments, 0, "delimiter", "", arguments.bound("delimiter")[0]);
        List<String> words = new ArrayList<>();
        long size = 0;
        for (Object item : items(value)) {
            String word = text(item);
            size += Texts.length(word);
            rendering.checkSize(size);
            words.add(word);
        }
        String delimiter = string("join", given);
        rendering.checkSize(size + (long) words.size() * Texts.length(delimiter));
        return String.join(delimiter, words);
    }

    private Object map(Object value, Arguments arguments) {
        List<Object> mapped = new ArrayList<>();
        if (!Values.truth(value)) {
            return mapped;
        }
        UnaryOperator<Object> change;
        if (arguments.positional().isEmpty() && arguments.named().containsKey("attribute")) {
            Object[] given = arguments.bound("attribute", "default");
            change = attribute(given[0], given[1]);
        } else if (arguments.positional().isEmpty()) {
            throw new WrongValueException("map needs the name of a filter, or attribute=");
        } else {
            String name = string("map", arguments.positional().get(0));
            Arguments others = arguments.after(1);
            change = item -> filter(name, item, others);
        }
        items(value).forEach(item -> mapped.add(change.apply(item)));
        return mapped;
    }

    private Object select(Object value, Arguments arguments, boolean ofAttribute, boolean wanted) {
        List<Object> selected = new ArrayList<>();
        if (!Values.truth(value)) {
            return selected;
        }
        int position = ofAttribute ? 1 : 0;
        if (ofAttribute && arguments.positional().isEmpty()) {
            throw new WrongValueException("it needs the name of an attribute");
        }
        UnaryOperator<Object> getter = ofAttribute ? attribute(arguments.positional().get(0)) : UnaryOperator.identity();
        Predicate<Object> test = Values::truth;
        if (arguments.positional().size() > position) {
            String name = string("select", arguments.positional().get(position));
            Arguments others = arguments.after(position + 1);
            test = item -> Tests.test(rendering, name, item, others);
        }
        for (Object item : items(value)) {
            if (test.test(getter.apply(item)) == wanted) {
                selected.add(item);
            }
        }
        return selected;
    }

    private Object extreme(boolean most, Object value, Arguments arguments) {
        Object[] given = arguments.bound("case_sensitive", "attribute");
        UnaryOperator<Object> getter = attribute(given[1]);
        boolean ignored = !truth(given[0]);
        List<Object> items = items(value);
        if (items.isEmpty()) {
            return new Undefined("there is no largest or smallest item: the sequence is empty");
        }
        Object found = items.get(0);
        Object foundKey = folded(getter.apply(found), ignored);
        for (Object item : items.subList(1, items.size())) {
            Object key = folded(getter.apply(item), ignored);
            if (Values.ordered(rendering, most ? ">" : "<", key, foundKey)) {
                found = item;
                foundKey = key;
            }
        }
        return found;
    }

    private Object replace(Object value, Arguments arguments) {
        Object[] given = arguments.bound("old", "new");
        String text = string("replace", value);
        String old = string("replace", given[0]);
        String replacement = string("replace", given[1]);
        rendering.checkSize(Texts.length(text) + (long) Texts.count(text, old) * Texts.length(replacement));
        return Texts.replace(text, old, replacement);
    }

    private Object round(Object value, Arguments arguments) {
        Object[] given = arguments.bound("precision", "method");
        int precision = whole(arguments, 0, "precision", given[0], 0);
        if (Math.abs(precision) > MOST_PRECISION) {
            throw new WrongValueException("round goes to at most " + MOST_PRECISION + " digits");
        }
        return Numbers.rounded(Values.defined(value), precision, string("round", given(arguments, 1, "method", "common", given[1])));
    }

    private Object sort(Object value, Arguments arguments) {
        Object[] given = arguments.bound("reverse", "case_sensitive", "attribute");
        List<UnaryOperator<Object>> getters = new ArrayList<>();
        Object[] attributes = given[2] instanceof String paths ? paths.split(",", -1) : new Object[] {given[2]};
        for (Object each : attributes) {
            getters.add(attribute(each));
        }
        boolean ignored = !truth(given[1]);
        List<Object[]> keyed = new ArrayList<>();
        for (Object item : items(value)) {
            List<Object> keys = new ArrayList<>();
            getters.forEach(getter -> keys.add(folded(getter.apply(item), ignored)));
            keyed.add(new Object[] {keys, item});
        }
        Comparator<Object> order = order(UnaryOperator.identity(), truth(given[0]));
        keyed.sort((left, right) -> order.compare(left[0], right[0]));
        List<Object> sorted = new ArrayList<>();
        keyed.forEach(each -> sorted.add(each[1]));
        return sorted;
    }

    private Object sum(Object value, Arguments arguments) {
        Object[] given = arguments.bound("attribute", "start");
        UnaryOperator<Object> getter = attribute(given[0]);
        Object total = given(arguments, 1, "start", BigInteger.ZERO, given[1]);
        for (Object item : items(value)) {
            Object number = getter.apply(item);
            if (!Numbers.isNumber(total) || !Numbers.isNumber(number)) {
                throw new WrongValueException("sum is only for numbers");
            }
            total = Numbers.compute("+", total, number);
        }
        return total;
    }

    private Object truncate(Object value, Arguments arguments) {
        Object[] given = arguments.bound("length", "killwords", "end", "leeway");
        String text = string("truncate", value);
        int most = whole(arguments, 0, "length", given[0], 255);
        String end = string("truncate", given(arguments, 2, "end", "...", given[2]));
        int leeway = given[3] == null ? 5 : whole(arguments, 3, "leeway", given[3], 5);
        if (most < Texts.length(end) || leeway < 0) {
            throw new WrongValueException("truncate needs a length that its end fits into, and a leeway of 0 or more");
        }
        if (Texts.length(text) <= (long) most + leeway) {
            return text;
        }
        String begin = Texts.begin(text, most - Texts.length(end));
        int space = begin.lastIndexOf(' ');
        return (truth(given[1]) || space < 0 ? begin : begin.substring(0, space)) + end;
    }

    private Object unique(Object value, Arguments arguments) {
        Object[] given = arguments.bound("case_sensitive", "attribute");
        UnaryOperator<Object> getter = attribute(given[1]);
        boolean ignored = !truth(given[0]);
        Set<Object> seen = new HashSet<>();
        List<Object> unique = new ArrayList<>();
        for (Object item : items(value)) {
            if (seen.add(hashed(folded(getter.apply(item), ignored)))) {
                unique.add(item);
            }
        }
        return unique;
    }

    /** Returns a key that is equal for values that are equal in Python. */
    private Object hashed(Object value) {
        rendering.step();
        if (Values.defined(value) instanceof Tuple tuple) {
            List<Object> items = new ArrayList<>();
            tuple.items().forEach(item -> items.add(hashed(item)));
            return items;
        }
        if (value instanceof List || value instanceof Map) {
            throw new WrongValueException("unique does not compare a " + Values.type(value));
        }
        Object number = Numbers.number(value);
        if (number instanceof Double real && real == Math.rint(real) && !Double.isInfinite(real)) {
            return new BigDecimal(real).toBigInteger();
        }
        return number != null ? number : value;
    }
}
