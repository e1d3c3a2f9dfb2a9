package inferenceblueprints.prompts;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The filter {@code tojson}: what Python's {@code json.dumps} writes with sorted keys, safe inside of HTML. */
final class JsonText {
    private final Rendering rendering;
    private final int indent;
    private final StringBuilder text = new StringBuilder();

    private JsonText(Rendering rendering, int indent) {
        this.rendering = rendering;
        this.indent = indent;
    }

    /** Returns a value as JSON, in one line if the indent is negative. */
    static String of(Rendering rendering, Object value, int indent) {
        JsonText json = new JsonText(rendering, indent);
        json.write(value, 0);
        return json.text.toString();
    }

    private void write(Object value, int level) {
        if (value == null) {
            text.append("null");
        } else if (value instanceof Boolean || value instanceof BigInteger) {
            text.append(value);
        } else if (value instanceof Double number) {
            text.append(Double.isNaN(number) ? "NaN"
                    : Double.isInfinite(number) ? number > 0 ? "Infinity" : "-Infinity"
                    : Numbers.text(number));
        } else if (value instanceof String string) {
            quote(string);
        } else if (value instanceof Undefined undefined) {
            throw undefined.wrong();
        } else if (value instanceof Map) {
            List<String> keys = new ArrayList<>(Values.mapping(value).keySet());
            keys.sort(Texts::compare);
            begin('{');
            for (int at = 0; at < keys.size(); at++) {
                next(at, level + 1);
                quote(keys.get(at));
                text.append(": ");
                write(Values.mapping(value).get(keys.get(at)), level + 1);
            }
            end(keys.isEmpty(), '}', level);
        } else {
            List<Object> items = Values.list(value);
            begin('[');
            for (int at = 0; at < items.size(); at++) {
                next(at, level + 1);
                write(items.get(at), level + 1);
            }
            end(items.isEmpty(), ']', level);
        }
        Values.bound(rendering, text);
    }

    private void begin(char bracket) {
        text.append(bracket);
    }

    private void next(int at, int level) {
        if (indent >= 0) {
            text.append(at > 0 ? ",\n" : "\n").append(" ".repeat(indent * level));
        } else {
            text.append(at > 0 ? ", " : "");
        }
    }

    private void end(boolean empty, char bracket, int level) {
        if (indent >= 0 && !empty) {
            text.append('\n').append(" ".repeat(indent * level));
        }
        text.append(bracket);
    }

    private void quote(String string) {
        text.append('"');
        for (int at = 0; at < string.length(); at++) {
            char each = string.charAt(at);
            switch (each) {
                case '"' -> text.append("\\\"");
                case '\\' -> text.append("\\\\");
                case '\n' -> text.append("\\n");
                case '\r' -> text.append("\\r");
                case '\t' -> text.append("\\t");
                case '\f' -> text.append("\\f");
                case '\b' -> text.append("\\b");
                default -> {
                    if (each < ' ' || each > '~' || "<>&'".indexOf(each) >= 0) {
                        text.append(String.format("\\u%04x", (int) each));
                    } else {
                        text.append(each);
                    }
                }
            }
        }
        text.append('"');
    }
}
