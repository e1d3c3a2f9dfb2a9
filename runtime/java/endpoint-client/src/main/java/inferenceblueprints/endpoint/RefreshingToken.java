package inferenceblueprints.endpoint;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Supplier;

/**
 * Keeps a token that expires, such as one of an OpenID Connect issuer or of AWS STS ({@code GetWebIdentityToken}), and fetches
 * the next one before it expires. Threads share one.
 *
 * <pre>{@code
 * RefreshingToken token = RefreshingToken.of(() -> {
 *     var answer = sts.getWebIdentityToken(each -> each.audience("https://api.models.example.com").signingAlgorithm("ES384"));
 *     return new RefreshingToken.Token(answer.webIdentityToken(), answer.expiration());
 * });
 * EndpointClient.builder(endpoint).authentication(Authentication.bearer(token));
 * }</pre>
 *
 * <p>Only the first call waits for the source, and one after a time without calls that was longer than the token's life. After
 * two thirds of its life, a token is replaced in the background. If the source fails then, the old token is used as long as it
 * is valid, and the source is asked again after {@value #RETRY_SECONDS} seconds. A token that the endpoint refuses with 401 is
 * replaced at once, at most once in {@value #RETRY_SECONDS} seconds.
 */
public final class RefreshingToken implements Supplier<String> {
    private static final int RETRY_SECONDS = 5;
    /** A token is not sent in its last seconds: the clocks of issuer and endpoint may differ. */
    private static final Duration MARGIN = Duration.ofSeconds(10);

    private final Callable<Token> source;
    private final Clock clock;
    private final Executor background;
    private final Object fetching = new Object();
    private volatile Held held;
    private volatile Instant retryAt = Instant.MIN;
    private boolean isRefreshing;

    RefreshingToken(Callable<Token> source, Clock clock, Executor background) {
        this.source = Objects.requireNonNull(source, "source");
        this.clock = clock;
        this.background = background;
    }

    /**
     * Returns a token that a source gives.
     *
     * @param source fetches a new token; it is called by one thread at a time
     * @return the token
     */
    public static RefreshingToken of(Callable<Token> source) {
        return new RefreshingToken(source, Clock.systemUTC(), work -> CompletableFuture.runAsync(work));
    }

    /**
     * A token of a source.
     *
     * @param value what is sent
     * @param expires when it expires
     */
    public record Token(String value, Instant expires) {
        /**
         * Checks that both are there.
         *
         * @param value what is sent
         * @param expires when it expires
         */
        public Token {
            Objects.requireNonNull(value, "value");
            Objects.requireNonNull(expires, "expires");
        }

        /** Returns the expiry. A log must not have the token. */
        @Override
        public String toString() {
            return "Token[expires=" + expires + "]";
        }
    }

    private record Held(Token token, Instant fetched, Instant refresh) {}

    /**
     * Returns a valid token.
     *
     * @return the token
     * @throws IllegalStateException if there is no valid token and the source gives none
     */
    @Override
    public String get() {
        Instant now = clock.instant();
        Held current = held;
        if (current == null || !isValid(current.token(), now)) {
            return fetched(now);
        }
        if (!now.isBefore(current.refresh()) && !now.isBefore(retryAt)) {
            refreshInBackground();
        }
        return current.token().value();
    }

    /**
     * Forgets a token that the endpoint has refused, unless it was fetched in the last seconds: then another one would be
     * refused too.
     */
    void forget(String refused) {
        synchronized (fetching) {
            Held current = held;
            if (current != null
                    && current.token().value().equals(refused)
                    && !clock.instant().isBefore(current.fetched().plusSeconds(RETRY_SECONDS))) {
                held = null;
            }
        }
    }

    private static boolean isValid(Token token, Instant now) {
        return now.isBefore(token.expires().minus(MARGIN));
    }

    /** Waits for a token. Of several threads, one asks the source. */
    private String fetched(Instant now) {
        synchronized (fetching) {
            Held current = held;
            if (current == null || !isValid(current.token(), now)) {
                current = hold(now);
            }
            return current.token().value();
        }
    }

    private void refreshInBackground() {
        synchronized (this) {
            if (isRefreshing) {
                return;
            }
            isRefreshing = true;
        }
        background.execute(() -> {
            try {
                synchronized (fetching) {
                    hold(clock.instant());
                }
            } catch (IllegalStateException error) {
                retryAt = clock.instant().plusSeconds(RETRY_SECONDS);
            } finally {
                synchronized (this) {
                    isRefreshing = false;
                }
            }
        });
    }

    private Held hold(Instant now) {
        Token token;
        try {
            token = Objects.requireNonNull(source.call(), "the source returned null");
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("no token: the thread was interrupted", error);
        } catch (Exception error) {
            throw new IllegalStateException("no token: its source failed: " + error, error);
        }
        if (!isValid(token, now)) {
            throw new IllegalStateException("no token: its source returned one that expires at " + token.expires()
                    + "; now is " + now + ". Compare this machine's clock");
        }
        Duration fresh = Duration.between(now, token.expires()).multipliedBy(2).dividedBy(3);
        Held next = new Held(token, now, now.plus(fresh));
        held = next;
        return next;
    }
}
