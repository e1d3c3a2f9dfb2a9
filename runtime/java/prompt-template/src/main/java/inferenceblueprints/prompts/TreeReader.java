package inferenceblueprints.prompts;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Makes statements of a syntax tree in JSON. Nodes have the names and fields of Jinja2. */
final class TreeReader {
    private static final int MOST_DEPTH = 110;
    private static final Map<String, String> OPERATORS =
            Map.of("Add", "+", "Sub", "-", "Mul", "*", "Div", "/", "FloorDiv", "//", "Mod", "%");
    private static final Map<String, String> COMPARISONS = Map.of("gt", ">", "gteq", ">=", "lt", "<", "lteq", "<=");

    private int depth;

    List<Statement> statements(JsonNode nodes) {
        List<Statement> statements = new ArrayList<>();
        nodes.forEach(node -> statements.add(located(node, statement(node))));
        return statements;
    }

    private static Statement located(JsonNode node, Statement statement) {
        int line = node.path("line").asInt();
        return scope -> {
            try {
                statement.write(scope);
            } catch (WrongValueException error) {
                throw new PromptTemplateException("line " + line + ": " + error.getMessage(), error);
            }
        };
    }

    private Statement statement(JsonNode node) {
        return switch (kind(node)) {
            case "Output" -> output(node);
            case "If" -> condition(node);
            case "For" -> new Loop(
                    target(node.get("target")),
                    expression(node.get("iter")),
                    node.path("test").isObject() ? expression(node.get("test")) : null,
                    statements(node.get("body")),
                    statements(node.get("else_")));
            case "Assign" -> {
                Target target = target(node.get("target"));
                Expression value = expression(node.get("node"));
                yield scope -> target.set(scope, value.value(scope));
            }
            default -> throw unknown(node);
        };
    }

    private Statement output(JsonNode node) {
        List<Statement> parts = new ArrayList<>();
        for (JsonNode each : node.get("nodes")) {
            if (kind(each).equals("TemplateData")) {
                String text = each.path("data").asText();
                parts.add(scope -> scope.rendering().write(text));
            } else {
                Expression value = expression(each);
                parts.add(located(each, scope -> scope.rendering().write(Values.text(scope.rendering(), value.value(scope)))));
            }
        }
        return scope -> parts.forEach(part -> part.write(scope));
    }

    private Statement condition(JsonNode node) {
        Expression test = expression(node.get("test"));
        List<Statement> body = statements(node.get("body"));
        List<Expression> otherTests = new ArrayList<>();
        List<List<Statement>> others = new ArrayList<>();
        for (JsonNode each : node.get("elif_")) {
            otherTests.add(expression(each.get("test")));
            others.add(statements(each.get("body")));
        }
        List<Statement> last = statements(node.get("else_"));
        return scope -> {
            List<Statement> chosen = Values.truth(test.value(scope)) ? body : null;
            for (int at = 0; chosen == null && at < others.size(); at++) {
                chosen = Values.truth(otherTests.get(at).value(scope)) ? others.get(at) : null;
            }
            (chosen == null ? last : chosen).forEach(statement -> statement.write(scope));
        };
    }

    private Target target(JsonNode node) {
        if (kind(node).equals("Name")) {
            String name = node.path("name").asText();
            return (scope, value) -> scope.set(name, value);
        }
        if (!kind(node).equals("Tuple")) {
            throw unknown(node);
        }
        List<Target> targets = new ArrayList<>();
        node.get("items").forEach(each -> targets.add(target(each)));
        return (scope, value) -> {
            List<Object> items = Values.items(value);
            if (items.size() != targets.size()) {
                throw new WrongValueException("it sets " + targets.size() + " variables from " + items.size() + " values");
            }
            for (int at = 0; at < items.size(); at++) {
                targets.get(at).set(scope, items.get(at));
            }
        };
    }

    private Expression expression(JsonNode node) {
        if (++depth > MOST_DEPTH) {
            throw new PromptTemplateException("line " + node.path("line").asInt() + ": more than " + MOST_DEPTH + " levels are in each other");
        }
        Expression expression = parsed(node);
        depth--;
        return scope -> {
            scope.rendering().step();
            return expression.value(scope);
        };
    }

    private List<Expression> expressions(JsonNode nodes) {
        List<Expression> expressions = new ArrayList<>();
        nodes.forEach(node -> expressions.add(expression(node)));
        return expressions;
    }

    private Expression parsed(JsonNode node) {
        String kind = kind(node);
        if (OPERATORS.containsKey(kind)) {
            Expression left = expression(node.get("left"));
            Expression right = expression(node.get("right"));
            return scope -> Numbers.compute(OPERATORS.get(kind), Values.defined(left.value(scope)), Values.defined(right.value(scope)));
        }
        return switch (kind) {
            case "Const" -> {
                Object value = constant(node.get("value"));
                yield scope -> value;
            }
            case "Name" -> {
                String name = node.path("name").asText();
                yield scope -> scope.get(name);
            }
            case "Getattr" -> {
                Expression value = expression(node.get("node"));
                String name = node.path("attr").asText();
                yield scope -> Values.item(value.value(scope), name);
            }
            case "Getitem" -> item(node);
            case "List" -> {
                List<Expression> items = expressions(node.get("items"));
                yield scope -> values(items, scope);
            }
            case "Tuple" -> {
                List<Expression> items = expressions(node.get("items"));
                yield scope -> new Tuple(values(items, scope));
            }
            case "Dict" -> mapping(node);
            case "Not" -> {
                Expression value = expression(node.get("node"));
                yield scope -> !Values.truth(value.value(scope));
            }
            case "Neg" -> {
                Expression value = expression(node.get("node"));
                yield scope -> Numbers.negated(Values.defined(value.value(scope)));
            }
            case "Pos" -> {
                Expression value = expression(node.get("node"));
                yield scope -> Numbers.negated(Numbers.negated(Values.defined(value.value(scope))));
            }
            case "And", "Or" -> {
                Expression left = expression(node.get("left"));
                Expression right = expression(node.get("right"));
                boolean until = kind.equals("Or");
                yield scope -> {
                    Object value = left.value(scope);
                    return Values.truth(value) == until ? value : right.value(scope);
                };
            }
            case "CondExpr" -> {
                Expression test = expression(node.get("test"));
                Expression yes = expression(node.get("expr1"));
                Expression no = expression(node.get("expr2"));
                yield scope -> (Values.truth(test.value(scope)) ? yes : no).value(scope);
            }
            case "Compare" -> comparison(node);
            case "Filter" -> {
                Expression value = expression(node.get("node"));
                String name = node.path("name").asText();
                Given given = given(node);
                yield scope -> new Filters(scope.rendering()).filter(name, value.value(scope), given.arguments(scope));
            }
            case "Test" -> {
                Expression value = expression(node.get("node"));
                String name = node.path("name").asText();
                Given given = given(node);
                yield scope -> Tests.test(scope.rendering(), name, value.value(scope), given.arguments(scope));
            }
            default -> throw unknown(node);
        };
    }

    private static Object constant(JsonNode value) {
        if (value.isIntegralNumber()) {
            return value.bigIntegerValue();
        }
        return value.isNumber() ? (Object) value.doubleValue() : value.isBoolean() ? value.booleanValue() : value.isNull() ? null : value.asText();
    }

    private static List<Object> values(List<Expression> expressions, Scope scope) {
        List<Object> values = new ArrayList<>(expressions.size());
        expressions.forEach(each -> values.add(each.value(scope)));
        return values;
    }

    private Expression item(JsonNode node) {
        Expression value = expression(node.get("node"));
        JsonNode argument = node.get("arg");
        if (!kind(argument).equals("Slice")) {
            Expression key = expression(argument);
            return scope -> Values.item(value.value(scope), key.value(scope));
        }
        Expression start = bound(argument.get("start"));
        Expression stop = bound(argument.get("stop"));
        Expression step = bound(argument.get("step"));
        return scope -> Values.slice(value.value(scope), start.value(scope), stop.value(scope), step.value(scope));
    }

    private Expression bound(JsonNode node) {
        return node == null || node.isNull() ? scope -> null : expression(node);
    }

    private Expression mapping(JsonNode node) {
        Map<String, Expression> items = new LinkedHashMap<>();
        for (JsonNode pair : node.get("items")) {
            items.put(pair.path("key").path("value").asText(), expression(pair.get("value")));
        }
        return scope -> {
            Map<String, Object> mapping = new LinkedHashMap<>();
            items.forEach((key, value) -> mapping.put(key, value.value(scope)));
            return mapping;
        };
    }

    private Expression comparison(JsonNode node) {
        Expression first = expression(node.get("expr"));
        List<String> operators = new ArrayList<>();
        List<Expression> others = new ArrayList<>();
        for (JsonNode each : node.get("ops")) {
            operators.add(each.path("op").asText());
            others.add(expression(each.get("expr")));
        }
        return scope -> {
            Object left = first.value(scope);
            for (int at = 0; at < others.size(); at++) {
                Object right = others.get(at).value(scope);
                if (!holds(scope.rendering(), operators.get(at), left, right)) {
                    return false;
                }
                left = right;
            }
            return true;
        };
    }

    private static boolean holds(Rendering rendering, String operator, Object left, Object right) {
        return switch (operator) {
            case "eq" -> Values.equal(rendering, left, right);
            case "ne" -> !Values.equal(rendering, left, right);
            case "in" -> Values.contains(rendering, right, Values.defined(left));
            case "notin" -> !Values.contains(rendering, right, Values.defined(left));
            default -> Values.ordered(rendering, COMPARISONS.get(operator), left, right);
        };
    }

    private Given given(JsonNode node) {
        List<Expression> positional = expressions(node.get("args"));
        Map<String, Expression> named = new LinkedHashMap<>();
        node.get("kwargs").forEach(each -> named.put(each.path("key").asText(), expression(each.get("value"))));
        return new Given(positional, named);
    }

    private static String kind(JsonNode node) {
        return node == null ? "" : node.path("kind").asText();
    }

    private static PromptTemplateException unknown(JsonNode node) {
        return new PromptTemplateException("the template has the part " + kind(node) + ", which this version of the class does not know");
    }

    /** What a loop or {@code set} writes into. */
    @FunctionalInterface
    interface Target {
        void set(Scope scope, Object value);
    }

    private record Given(List<Expression> positional, Map<String, Expression> named) {
        Arguments arguments(Scope scope) {
            if (positional.isEmpty() && named.isEmpty()) {
                return Arguments.NONE;
            }
            Map<String, Object> values = new LinkedHashMap<>();
            named.forEach((name, value) -> values.put(name, value.value(scope)));
            return new Arguments(TreeReader.values(positional, scope), values);
        }
    }
}
