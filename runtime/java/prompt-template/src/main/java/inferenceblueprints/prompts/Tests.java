package inferenceblueprints.prompts;

import java.math.BigInteger;
import java.util.Map;

/** The tests that {@code is} and {@code select} use. */
final class Tests {
    private Tests() {}

    static boolean test(Rendering rendering, String name, Object value, Arguments arguments) {
        rendering.step();
        switch (name) {
            case "defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "number", "string", "mapping",
                    "sequence", "iterable", "lower", "upper", "even", "odd" -> arguments.bound();
            default -> {
                if (!arguments.has(0, "") || arguments.positional().size() > 1 || !arguments.named().isEmpty()) {
                    throw new WrongValueException("the test " + name + " takes one argument");
                }
            }
        }
        return switch (name) {
            case "defined" -> !(value instanceof Undefined);
            case "undefined" -> value instanceof Undefined;
            case "none" -> value == null;
            case "boolean" -> value instanceof Boolean;
            case "true" -> Boolean.TRUE.equals(value);
            case "false" -> Boolean.FALSE.equals(value);
            case "integer" -> value instanceof BigInteger;
            case "float" -> value instanceof Double;
            case "number" -> Numbers.isNumber(value);
            case "string" -> value instanceof String;
            case "mapping" -> value instanceof Map;
            case "sequence" -> value instanceof String || value instanceof Map || Values.isSequence(value);
            case "iterable" -> Values.defined(value) instanceof String || value instanceof Map || Values.isSequence(value);
            case "lower" -> isCased(Values.text(rendering, value), false);
            case "upper" -> isCased(Values.text(rendering, value), true);
            case "even" -> remainder(value, BigInteger.TWO, 0);
            case "odd" -> remainder(value, BigInteger.TWO, 1);
            case "divisibleby" -> remainder(value, arguments.positional().get(0), 0);
            case "in" -> Values.contains(rendering, arguments.positional().get(0), value);
            case "eq", "equalto", "==" -> Values.equal(rendering, value, arguments.positional().get(0));
            case "ne", "!=" -> !Values.equal(rendering, value, arguments.positional().get(0));
            case "lt", "lessthan", "<" -> Values.ordered(rendering, "<", value, arguments.positional().get(0));
            case "le", "<=" -> Values.ordered(rendering, "<=", value, arguments.positional().get(0));
            case "gt", "greaterthan", ">" -> Values.ordered(rendering, ">", value, arguments.positional().get(0));
            case "ge", ">=" -> Values.ordered(rendering, ">=", value, arguments.positional().get(0));
            default -> throw new WrongValueException("No test named '" + name + "'.");
        };
    }

    private static boolean remainder(Object value, Object divisor, int wanted) {
        Values.defined(value);
        Values.defined(divisor);
        if (!Numbers.isNumber(value) || !Numbers.isNumber(divisor)) {
            throw new WrongValueException("only a number can be even, odd or divisible");
        }
        return Numbers.asDouble(Numbers.compute("%", value, divisor)) == wanted;
    }

    /** Tells whether Python's {@code islower} or {@code isupper} is true. */
    private static boolean isCased(String text, boolean upper) {
        boolean cased = false;
        for (int point : text.codePoints().toArray()) {
            if (Character.isTitleCase(point) || (upper ? Character.isLowerCase(point) : Character.isUpperCase(point))) {
                return false;
            }
            cased |= upper ? Character.isUpperCase(point) : Character.isLowerCase(point);
        }
        return cased;
    }
}
