package inferenceblueprints.prompts;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Arguments of a filter or a test. */
record Arguments(List<Object> positional, Map<String, Object> named) {
    static final Arguments NONE = new Arguments(List.of(), Map.of());

    /** Returns the arguments in the order of their names. One that was not given is null, as is one that is none. */
    Object[] bound(String... names) {
        if (positional.size() > names.length) {
            throw new WrongValueException("it takes at most " + names.length + " arguments, not " + positional.size());
        }
        Object[] bound = new Object[names.length];
        Map<String, Object> left = new LinkedHashMap<>(named);
        for (int at = 0; at < names.length; at++) {
            if (at < positional.size()) {
                if (left.containsKey(names[at])) {
                    throw new WrongValueException("it gets its argument " + names[at] + " twice");
                }
                bound[at] = positional.get(at);
            } else {
                bound[at] = left.remove(names[at]);
            }
        }
        if (!left.isEmpty()) {
            throw new WrongValueException("it has no argument " + left.keySet().iterator().next());
        }
        return bound;
    }

    boolean has(int position, String name) {
        return positional.size() > position || named.containsKey(name);
    }

    /** Returns the arguments without the first ones. */
    Arguments after(int count) {
        return new Arguments(new ArrayList<>(positional.subList(count, positional.size())), named);
    }
}
