package inferenceblueprints.endpoint;

import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.net.ssl.SSLContext;

/** What a builder has collected. */
final class Settings {
    final URI base;
    String model;
    Duration deadline = Duration.ofSeconds(30);
    Duration connectTimeout = Duration.ofSeconds(1);
    int maxInFlight = 512;
    int maxAttempts = 3;
    int retryTokens = 500;
    boolean hedging = true;
    Duration hedgeAfter;
    int maxAnswerBytes = 16 << 20;
    // On a busy machine a thread often waits for a processor. With few threads, many calls wait with it.
    int threads = Math.max(8, 2 * Runtime.getRuntime().availableProcessors());
    boolean http2;
    SSLContext tls;
    int circuitFailurePercent = 50;
    int circuitCalls = 20;
    Duration circuitWindow = Duration.ofSeconds(10);
    Duration circuitPause = Duration.ofSeconds(5);
    Authentication authentication = (uri, headers, body) -> java.util.Map.of();
    final List<CallListener> listeners = new ArrayList<>();

    Settings(URI endpoint) {
        String scheme = endpoint.getScheme();
        if (endpoint.getHost() == null || !("http".equals(scheme) || "https".equals(scheme))) {
            throw new IllegalArgumentException("endpoint: must be http://HOST or https://HOST; got " + endpoint);
        }
        String text = endpoint.toString().replaceAll("/+$", "");
        base = URI.create(text.endsWith("/v1") ? text : text + "/v1");
    }

    Settings(Settings other) {
        base = other.base;
        model = other.model;
        deadline = other.deadline;
        connectTimeout = other.connectTimeout;
        maxInFlight = other.maxInFlight;
        maxAttempts = other.maxAttempts;
        retryTokens = other.retryTokens;
        hedging = other.hedging;
        hedgeAfter = other.hedgeAfter;
        maxAnswerBytes = other.maxAnswerBytes;
        threads = other.threads;
        http2 = other.http2;
        tls = other.tls;
        circuitFailurePercent = other.circuitFailurePercent;
        circuitCalls = other.circuitCalls;
        circuitWindow = other.circuitWindow;
        circuitPause = other.circuitPause;
        authentication = other.authentication;
        listeners.addAll(other.listeners);
    }

    static void requirePositive(String name, Duration value) {
        if (value.isZero() || value.isNegative()) {
            throw new IllegalArgumentException(name + ": must be above 0; got " + value);
        }
    }

    static void requireRange(String name, int value, int least, int most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(name + ": must be " + least + " to " + most + "; got " + value);
        }
    }
}
