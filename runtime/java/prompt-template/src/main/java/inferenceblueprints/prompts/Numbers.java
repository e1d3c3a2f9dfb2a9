package inferenceblueprints.prompts;

import com.fasterxml.jackson.core.io.schubfach.DoubleToDecimal;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.util.regex.Pattern;

/** Numbers as Python computes with them: whole numbers without a limit of their type, and doubles. */
final class Numbers {
    private static final int MOST_BITS = 256;
    private static final Pattern FLOAT =
            Pattern.compile("[+-]?(\\d+(_\\d+)*\\.?(\\d+(_\\d+)*)?|\\.\\d+(_\\d+)*)([eE][+-]?\\d+(_\\d+)*)?");
    private static final Pattern NOT_FINITE = Pattern.compile("(?i)([+-]?)(inf(?:inity)?|nan)");
    private static final int QUOTIENT_BITS = 66;

    private Numbers() {}

    static boolean isNumber(Object value) {
        return value instanceof BigInteger || value instanceof Double || value instanceof Boolean;
    }

    /** Returns a boolean as 0 or 1, other numbers as they are, and null for anything else. */
    static Object number(Object value) {
        if (value instanceof Boolean truth) {
            return truth ? BigInteger.ONE : BigInteger.ZERO;
        }
        return value instanceof BigInteger || value instanceof Double ? value : null;
    }

    static double asDouble(Object number) {
        if (number instanceof Double value) {
            return value;
        }
        double value = ((BigInteger) number).doubleValue();
        if (Double.isInfinite(value)) {
            throw new WrongValueException("int too large to convert to float");
        }
        return value;
    }

    static Object checked(Object number) {
        if (number instanceof BigInteger whole && bits(whole) > MOST_BITS) {
            throw tooLarge();
        }
        return number;
    }

    private static int bits(BigInteger whole) {
        return whole.abs().bitLength();
    }

    private static WrongValueException tooLarge() {
        return new WrongValueException("a whole number has more than " + MOST_BITS + " bits");
    }

    static Object compute(String operator, Object left, Object right) {
        Object a = number(left);
        Object b = number(right);
        if (a == null || b == null) {
            throw new WrongValueException("operator " + operator + " is only for numbers; write strings one after the other");
        }
        if (operator.equals("*") && (a instanceof BigInteger x ? bits(x) : 0) + (b instanceof BigInteger y ? bits(y) : 0) > MOST_BITS) {
            throw tooLarge();
        }
        return checked(
                a instanceof BigInteger x && b instanceof BigInteger y
                        ? ofWhole(operator, x, y)
                        : ofDoubles(operator, asDouble(a), asDouble(b)));
    }

    private static Object ofWhole(String operator, BigInteger a, BigInteger b) {
        if (b.signum() == 0 && !"+-*".contains(operator)) {
            throw new WrongValueException("division by zero");
        }
        return switch (operator) {
            case "+" -> a.add(b);
            case "-" -> a.subtract(b);
            case "*" -> a.multiply(b);
            case "/" -> quotient(a, b);
            case "//" -> floorDivided(a, b);
            default -> a.subtract(floorDivided(a, b).multiply(b));
        };
    }

    private static BigInteger floorDivided(BigInteger a, BigInteger b) {
        BigInteger[] parts = a.divideAndRemainder(b);
        return parts[1].signum() != 0 && parts[1].signum() != b.signum() ? parts[0].subtract(BigInteger.ONE) : parts[0];
    }

    /** Returns a / b, rounded once. */
    private static double quotient(BigInteger a, BigInteger b) {
        if (bits(a) <= 53 && bits(b) <= 53) {
            double quotient = a.doubleValue() / b.doubleValue();
            return a.signum() == 0 ? 0.0 : quotient;
        }
        int shift = Math.max(0, QUOTIENT_BITS - bits(a) + bits(b));
        BigInteger[] parts = a.abs().shiftLeft(shift).divideAndRemainder(b.abs());
        BigInteger whole = parts[1].signum() != 0 ? parts[0].setBit(0) : parts[0];
        double quotient = Math.scalb(whole.doubleValue(), -shift);
        if (Double.isInfinite(quotient)) {
            throw new WrongValueException("integer division result too large for a float");
        }
        return a.signum() * b.signum() < 0 ? -quotient : quotient;
    }

    private static Object ofDoubles(String operator, double a, double b) {
        if (b == 0 && !"+-*".contains(operator)) {
            throw new WrongValueException("float division by zero");
        }
        return switch (operator) {
            case "+" -> a + b;
            case "-" -> a - b;
            case "*" -> a * b;
            case "/" -> a / b;
            case "//" -> floorDivided(a, b);
            default -> remainder(a, b);
        };
    }

    private static double remainder(double a, double b) {
        double remainder = a % b;
        if (remainder == 0) {
            return Math.copySign(0.0, b);
        }
        return remainder < 0 != b < 0 ? remainder + b : remainder;
    }

    private static double floorDivided(double a, double b) {
        double remainder = a % b;
        double quotient = (a - remainder) / b;
        if (remainder != 0 && b < 0 != remainder < 0) {
            quotient -= 1;
        }
        if (quotient == 0) {
            return Math.copySign(0.0, a / b);
        }
        double floor = Math.floor(quotient);
        return quotient - floor > 0.5 ? floor + 1 : floor;
    }

    static Object negated(Object value) {
        Object number = number(value);
        if (number == null) {
            throw new WrongValueException("- is only for numbers");
        }
        return number instanceof BigInteger whole ? whole.negate() : (Object) (-(Double) number);
    }

    /** Compares two numbers; null if one is not a number in the sense of arithmetic (NaN). */
    static Integer compare(Object left, Object right) {
        Object a = number(left);
        Object b = number(right);
        if (a instanceof BigInteger x && b instanceof BigInteger y) {
            return x.compareTo(y);
        }
        double x = a instanceof Double value ? value : 0;
        double y = b instanceof Double value ? value : 0;
        if (Double.isNaN(x) || Double.isNaN(y)) {
            return null;
        }
        if (Double.isInfinite(x) || Double.isInfinite(y) || a instanceof Double && b instanceof Double) {
            return x == y ? 0 : Double.compare(x, y);
        }
        return exact(a).compareTo(exact(b));
    }

    private static BigDecimal exact(Object number) {
        return number instanceof BigInteger whole ? new BigDecimal(whole) : new BigDecimal((Double) number);
    }

    /** Returns a double as Python's {@code repr} does. */
    static String text(double value) {
        if (Double.isNaN(value)) {
            return "nan";
        }
        if (Double.isInfinite(value)) {
            return value > 0 ? "inf" : "-inf";
        }
        if (value == 0) {
            return 1 / value > 0 ? "0.0" : "-0.0";
        }
        BigDecimal shortest = shortest(value);
        String digits = shortest.unscaledValue().abs().toString();
        int exponent = digits.length() - 1 - shortest.scale();
        String sign = value < 0 ? "-" : "";
        if (exponent >= -4 && exponent < 16) {
            String plain = shortest.abs().toPlainString();
            return sign + (plain.contains(".") ? plain : plain + ".0");
        }
        String fraction = digits.length() > 1 ? "." + digits.substring(1) : "";
        return sign + digits.charAt(0) + fraction + "e" + (exponent < 0 ? "-" : "+") + String.format("%02d", Math.abs(exponent));
    }

    /** Returns the decimal with the fewest digits that reads back as the value. The JDK's own does not before JDK 19 (JDK-4511638). */
    private static BigDecimal shortest(double value) {
        BigDecimal found = new BigDecimal(DoubleToDecimal.toString(value)).stripTrailingZeros();
        if (found.precision() == 2) {
            // It never returns a single digit that is further away than two digits.
            BigDecimal shorter = found.setScale(found.scale() - 1, RoundingMode.HALF_EVEN);
            return shorter.doubleValue() == value ? shorter.stripTrailingZeros() : found;
        }
        return found;
    }

    static Object rounded(Object value, int precision, String method) {
        Object number = number(value);
        if (number == null) {
            throw new WrongValueException("round is only for numbers");
        }
        if (method.equals("common")) {
            return number instanceof BigInteger whole ? rounded(whole, precision) : rounded((Double) number, precision);
        }
        if (!method.equals("ceil") && !method.equals("floor")) {
            throw new WrongValueException("method of round must be common, ceil or floor");
        }
        Object power = precision >= 0 ? BigInteger.TEN.pow(precision) : (Object) Math.pow(10, precision);
        Object scaled = number instanceof BigInteger x && power instanceof BigInteger y
                ? x.multiply(y)
                : (Object) (asDouble(number) * asDouble(power));
        Object whole = scaled instanceof Double x ? whole(method.equals("ceil") ? Math.ceil(x) : Math.floor(x)) : scaled;
        return power instanceof BigInteger y ? quotient((BigInteger) whole, y) : (Object) (asDouble(whole) / (Double) power);
    }

    private static BigInteger rounded(BigInteger whole, int precision) {
        return precision >= 0 ? whole : new BigDecimal(whole).setScale(precision, RoundingMode.HALF_EVEN).toBigInteger();
    }

    private static Double rounded(double value, int precision) {
        if (Double.isNaN(value) || Double.isInfinite(value)) {
            return value;
        }
        double rounded = new BigDecimal(value).setScale(precision, RoundingMode.HALF_EVEN).doubleValue();
        return rounded == 0 ? Math.copySign(0.0, value) : rounded;
    }

    private static BigInteger whole(double value) {
        if (Double.isInfinite(value) || Double.isNaN(value)) {
            throw new WrongValueException("cannot convert float " + text(value) + " to integer");
        }
        return new BigDecimal(value).toBigInteger();
    }

    /** The filter {@code int}. */
    static Object toWhole(Object value, Object otherwise, int base) {
        if (value instanceof String text) {
            BigInteger whole = whole(ascii(text), base);
            Double number = whole == null ? parsed(text) : null;
            if (whole != null) {
                return whole;
            }
            return number == null || Double.isInfinite(number) || Double.isNaN(number) ? otherwise : whole(number);
        }
        Object number = number(value);
        if (number instanceof Double real) {
            return Double.isNaN(real) ? otherwise : whole(real);
        }
        return number == null ? otherwise : number;
    }

    private static BigInteger whole(String text, int base) {
        String prefix = base == 16 ? "(?:0[xX]_?)?" : base == 8 ? "(?:0[oO]_?)?" : base == 2 ? "(?:0[bB]_?)?" : "";
        var match = Pattern.compile("([+-]?)" + prefix + "([0-9a-zA-Z]+(?:_[0-9a-zA-Z]+)*)").matcher(text);
        if (!match.matches()) {
            return null;
        }
        try {
            return new BigInteger(match.group(1) + match.group(2).replace("_", ""), base);
        } catch (NumberFormatException error) {
            return null;
        }
    }

    /** The filter {@code float}. */
    static Object toDouble(Object value, Object otherwise) {
        if (value instanceof String text) {
            Double parsed = parsed(text);
            return parsed == null ? otherwise : parsed;
        }
        Object number = number(value);
        return number == null ? otherwise : (Object) asDouble(number);
    }

    private static Double parsed(String text) {
        String trimmed = ascii(text);
        var special = NOT_FINITE.matcher(trimmed);
        if (special.matches()) {
            double magnitude = special.group(2).equalsIgnoreCase("nan") ? Double.NaN : Double.POSITIVE_INFINITY;
            return special.group(1).equals("-") ? -magnitude : magnitude;
        }
        return FLOAT.matcher(trimmed).matches() ? Double.valueOf(trimmed.replace("_", "")) : null;
    }

    /** Returns digits of any script as ASCII, without white space around them. */
    private static String ascii(String text) {
        StringBuilder ascii = new StringBuilder();
        Texts.strip(text, null).codePoints().forEach(point -> ascii.appendCodePoint(
                Character.getType(point) == Character.DECIMAL_DIGIT_NUMBER ? '0' + Character.digit(point, 10) : point));
        return ascii.toString();
    }
}
