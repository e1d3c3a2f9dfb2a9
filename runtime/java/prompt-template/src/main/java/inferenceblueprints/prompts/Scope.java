package inferenceblueprints.prompts;

import java.util.HashMap;
import java.util.Map;

/** The variables of the template, or of one round of a loop. */
record Scope(Rendering rendering, Scope outer, Map<String, Object> variables) {
    Scope inner() {
        return new Scope(rendering, this, new HashMap<>());
    }

    Object get(String name) {
        for (Scope scope = this; scope != null; scope = scope.outer) {
            if (scope.variables.containsKey(name)) {
                return scope.variables.get(name);
            }
        }
        return new Undefined("'" + name + "' is undefined");
    }

    void set(String name, Object value) {
        variables.put(name, value);
    }
}
