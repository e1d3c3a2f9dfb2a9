package inferenceblueprints.prompts;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Strings as Python sees them: sequences of code points. */
final class Texts {
    private static final Pattern WORD_BEGINS = Pattern.compile("[-\\s\\x1c-\\x1f\\x85\\p{Z}({\\[<]+");
    private static final int N_WITH_APOSTROPHE = 0x149;

    private Texts() {}

    static int length(String text) {
        return text.codePointCount(0, text.length());
    }

    static List<Object> characters(String text) {
        List<Object> characters = new ArrayList<>(text.length());
        text.codePoints().forEach(each -> characters.add(Character.toString(each)));
        return characters;
    }

    static String reversed(String text) {
        int[] points = text.codePoints().toArray();
        StringBuilder reversed = new StringBuilder(text.length());
        for (int at = points.length - 1; at >= 0; at--) {
            reversed.appendCodePoint(points[at]);
        }
        return reversed.toString();
    }

    static String begin(String text, int characters) {
        return characters >= length(text) ? text : text.substring(0, text.offsetByCodePoints(0, Math.max(0, characters)));
    }

    static int compare(String left, String right) {
        return Arrays.compare(left.codePoints().toArray(), right.codePoints().toArray());
    }

    /** Tells whether Python's {@code str.isspace} is true. */
    static boolean isSpace(int point) {
        return point == ' ' || point >= '\t' && point <= '\r' || point >= 0x1c && point <= 0x1f || point == 0x85
                || Character.isSpaceChar(point);
    }

    static String strip(String text, String characters) {
        int[] points = text.codePoints().toArray();
        int begin = 0;
        int end = points.length;
        while (begin < end && stripped(points[begin], characters)) {
            begin++;
        }
        while (begin < end && stripped(points[end - 1], characters)) {
            end--;
        }
        return new String(points, begin, end - begin);
    }

    private static boolean stripped(int point, String characters) {
        return characters == null ? isSpace(point) : characters.indexOf(point) >= 0;
    }

    static String upper(String text) {
        return text.toUpperCase(Locale.ROOT);
    }

    static String lower(String text) {
        return text.toLowerCase(Locale.ROOT);
    }

    static String capitalized(String text) {
        if (text.isEmpty()) {
            return text;
        }
        String first = text.substring(0, text.offsetByCodePoints(0, 1));
        return titled(first) + lower(text).substring(lower(first).length());
    }

    private static String titled(String character) {
        int point = character.codePointAt(0);
        String upper = upper(character);
        int title = Character.toTitleCase(point);
        if (title != point || length(upper) == 1) {
            return Character.toString(title);
        }
        int second = upper.offsetByCodePoints(0, 1);
        return point == N_WITH_APOSTROPHE ? upper : upper.substring(0, second) + lower(upper.substring(second));
    }

    static String title(String text) {
        StringBuilder title = new StringBuilder(text.length());
        Matcher between = WORD_BEGINS.matcher(text);
        int begin = 0;
        while (between.find()) {
            title.append(word(text.substring(begin, between.start()))).append(between.group());
            begin = between.end();
        }
        return title.append(word(text.substring(begin))).toString();
    }

    private static String word(String word) {
        if (word.isEmpty()) {
            return word;
        }
        int second = word.offsetByCodePoints(0, 1);
        return upper(word.substring(0, second)) + lower(word.substring(second));
    }

    static int words(String text) {
        boolean inside = false;
        int words = 0;
        for (int point : text.codePoints().toArray()) {
            boolean word = isWord(point);
            words += word && !inside ? 1 : 0;
            inside = word;
        }
        return words;
    }

    private static boolean isWord(int point) {
        int type = Character.getType(point);
        return point == '_' || Character.isLetterOrDigit(point) || type == Character.LETTER_NUMBER || type == Character.OTHER_NUMBER;
    }

    static int count(String text, String part) {
        if (part.isEmpty()) {
            return length(text) + 1;
        }
        int count = 0;
        for (int at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length())) {
            count++;
        }
        return count;
    }

    static String replace(String text, String old, String replacement) {
        if (!old.isEmpty()) {
            return text.replace(old, replacement);
        }
        StringBuilder replaced = new StringBuilder(replacement);
        text.codePoints().forEach(each -> replaced.appendCodePoint(each).append(replacement));
        return replaced.toString();
    }

    /** Returns a string as Python's {@code repr} does. */
    static String quoted(String text) {
        char quote = text.indexOf('\'') >= 0 && text.indexOf('"') < 0 ? '"' : '\'';
        StringBuilder quoted = new StringBuilder(text.length() + 2).append(quote);
        text.codePoints().forEach(point -> {
            switch (point) {
                case '\n' -> quoted.append("\\n");
                case '\r' -> quoted.append("\\r");
                case '\t' -> quoted.append("\\t");
                default -> {
                    if (point == quote || point == '\\') {
                        quoted.append('\\').appendCodePoint(point);
                    } else if (isPrintable(point)) {
                        quoted.appendCodePoint(point);
                    } else if (point < 0x100) {
                        quoted.append(String.format("\\x%02x", point));
                    } else {
                        quoted.append(String.format(point < 0x10000 ? "\\u%04x" : "\\U%08x", point));
                    }
                }
            }
        });
        return quoted.append(quote).toString();
    }

    private static boolean isPrintable(int point) {
        return switch (Character.getType(point)) {
            case Character.CONTROL, Character.FORMAT, Character.SURROGATE, Character.PRIVATE_USE, Character.UNASSIGNED,
                    Character.LINE_SEPARATOR, Character.PARAGRAPH_SEPARATOR, Character.SPACE_SEPARATOR -> point == ' ';
            default -> true;
        };
    }
}
