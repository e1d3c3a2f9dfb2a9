package inferenceblueprints.endpoint;

import java.net.http.HttpHeaders;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.concurrent.ThreadLocalRandom;

/** How long to wait before a retry: exponential with full jitter, and at least what the endpoint asks for. */
final class RetryDelay {
    // Base and maximum as in the AWS SDKs' standard retry mode 2.1.
    private static final long BASE_MILLIS = 50;
    private static final long THROTTLED_BASE_MILLIS = 1_000;
    private static final long MOST_MILLIS = 20_000;
    private static final int MOST_DOUBLINGS = 20;

    private RetryDelay() {}

    static Duration before(int retry, boolean throttled, Duration asked) {
        long base = throttled ? THROTTLED_BASE_MILLIS : BASE_MILLIS;
        long most = Math.min(MOST_MILLIS, base << Math.min(retry - 1, MOST_DOUBLINGS));
        if (asked == null) {
            return Duration.ofMillis(ThreadLocalRandom.current().nextLong(most + 1));
        }
        // Not all at the same moment: up to a tenth later than asked.
        long millis = asked.toMillis();
        return Duration.ofMillis(millis + ThreadLocalRandom.current().nextLong(millis / 10 + 1));
    }

    /** Reads {@code Retry-After}: seconds or a date (RFC 9110, section 10.2.3). Null if missing or not valid. */
    static Duration asked(HttpHeaders headers, Instant now) {
        String text = headers.firstValue("retry-after").map(String::strip).orElse("");
        if (text.matches("\\d{1,9}")) {
            return Duration.ofSeconds(Long.parseLong(text));
        }
        try {
            Instant date = ZonedDateTime.parse(text, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant();
            return date.isAfter(now) ? Duration.between(now, date) : Duration.ZERO;
        } catch (DateTimeParseException wrong) {
            return null;
        }
    }
}
