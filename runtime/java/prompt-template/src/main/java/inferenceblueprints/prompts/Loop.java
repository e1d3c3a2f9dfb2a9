package inferenceblueprints.prompts;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The statement {@code for}. */
record Loop(TreeReader.Target target, Expression values, Expression test, List<Statement> body, List<Statement> otherwise)
        implements Statement {
    private static final String VARIABLE = "loop";

    @Override
    public void write(Scope scope) {
        List<Object> items = chosen(scope);
        for (int at = 0; at < items.size(); at++) {
            Scope round = scope.inner();
            round.set(VARIABLE, position(items, at));
            target.set(round, items.get(at));
            for (Statement statement : body) {
                statement.write(round);
            }
        }
        if (items.isEmpty()) {
            Scope inner = scope.inner();
            otherwise.forEach(statement -> statement.write(inner));
        }
    }

    private List<Object> chosen(Scope scope) {
        List<Object> chosen = new ArrayList<>();
        for (Object item : Values.items(values.value(scope))) {
            scope.rendering().round();
            Scope inner = test == null ? null : scope.inner();
            if (inner != null) {
                target.set(inner, item);
            }
            if (inner == null || Values.truth(test.value(inner))) {
                chosen.add(item);
            }
        }
        return chosen;
    }

    private static Map<String, Object> position(List<Object> items, int at) {
        int left = items.size() - at;
        Map<String, Object> loop = new HashMap<>();
        loop.put("index", BigInteger.valueOf(at + 1));
        loop.put("index0", BigInteger.valueOf(at));
        loop.put("revindex", BigInteger.valueOf(left));
        loop.put("revindex0", BigInteger.valueOf(left - 1));
        loop.put("first", at == 0);
        loop.put("last", left == 1);
        loop.put("length", BigInteger.valueOf(items.size()));
        // Jinja2 counts how often a loop calls itself, which templates may not do.
        loop.put("depth", BigInteger.ONE);
        loop.put("depth0", BigInteger.ZERO);
        loop.put("previtem", at == 0 ? new Undefined("there is no previous item") : items.get(at - 1));
        loop.put("nextitem", left == 1 ? new Undefined("there is no next item") : items.get(at + 1));
        return loop;
    }
}
