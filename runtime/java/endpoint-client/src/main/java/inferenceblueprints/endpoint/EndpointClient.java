package inferenceblueprints.endpoint;

import java.net.URI;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Consumer;
import javax.net.ssl.SSLContext;

/**
 * Calls a model's endpoint. Threads share one client; create it once per process.
 *
 * <pre>{@code
 * EndpointClient client = EndpointClient.builder(URI.create("https://models.internal")).model("qwen3-8b").build();
 * Answer answer = client.send(ModelRequest.chat("Name a colour."));
 * System.out.println(answer.text());
 * }</pre>
 *
 * <p>Each call has a deadline for everything: waiting, all attempts, and the whole answer. At the deadline the request is
 * cancelled on the wire, so the endpoint stops generating. Calls beyond {@code maxInFlight} are rejected at once.
 *
 * <p>Futures complete on a thread of the client. Do not block there: use the {@code Async} methods of
 * {@link CompletableFuture} with your own executor. To cancel a call, cancel the future that the client returned, not one
 * that was derived from it.
 */
public final class EndpointClient implements AutoCloseable {
    private final Transport transport;

    private EndpointClient(Settings settings) {
        transport = new Transport(settings);
    }

    /**
     * Starts a client.
     *
     * @param endpoint address of the endpoint, with or without {@code /v1}
     * @return a builder with settings for interactive calls
     */
    public static Builder builder(URI endpoint) {
        return new Builder(endpoint);
    }

    /**
     * Asks and waits for the whole answer.
     *
     * @param request the request
     * @return the answer
     * @throws EndpointException if there is no answer
     * @throws IllegalStateException on a thread of this client, which must not block
     */
    public Answer send(ModelRequest request) {
        transport.requireOtherThread();
        CompletableFuture<Answer> call = sendAsync(request);
        try {
            return AnswerStream.Waiting.result(call);
        } catch (InterruptedException stop) {
            call.cancel(true);
            throw AnswerStream.Waiting.interrupted(stop);
        }
    }

    /**
     * Asks without waiting.
     *
     * @param request the request
     * @return the answer, or an {@link EndpointException}; cancelling it cancels the request on the wire
     */
    public CompletableFuture<Answer> sendAsync(ModelRequest request) {
        return new Call(transport, request, null).start();
    }

    /**
     * Asks for a stream, and hands over its parts as they come in.
     *
     * @param request the request
     * @param onText gets the parts in order, on a thread of the client; the endpoint is read no faster than it returns
     * @return the whole answer after the last part, or an {@link EndpointException}; cancelling it closes the connection
     */
    public CompletableFuture<Answer> streamAsync(ModelRequest request, Consumer<String> onText) {
        return new Call(transport, request, Objects.requireNonNull(onText, "onText")).start();
    }

    /**
     * Asks for a stream that the calling thread reads.
     *
     * @param request the request
     * @return the parts; close it
     * @throws IllegalStateException on a thread of this client, which must not block
     */
    public AnswerStream stream(ModelRequest request) {
        transport.requireOtherThread();
        AnswerStream stream = new AnswerStream();
        return stream.endsWith(streamAsync(request, stream::part));
    }

    /**
     * Asks for a typed value and waits. It throws no {@link EndpointException}: without a usable answer the value is the
     * structure's fallback, and {@link Decision#failure()} says why.
     *
     * @param <T> the record
     * @param request a chat request
     * @param structure the record and its fallback
     * @return the value with its explanation
     * @throws IllegalStateException on a thread of this client, which must not block
     */
    public <T extends Record> Decision<T> decide(ModelRequest request, Structure<T> structure) {
        transport.requireOtherThread();
        CompletableFuture<Decision<T>> decided = decideAsync(request, structure);
        try {
            return decided.get();
        } catch (InterruptedException stop) {
            decided.cancel(true);
            throw AnswerStream.Waiting.interrupted(stop);
        } catch (java.util.concurrent.ExecutionException error) {
            throw new IllegalStateException(error.getCause());
        }
    }

    /**
     * Asks for a typed value without waiting.
     *
     * @param <T> the record
     * @param request a chat request
     * @param structure the record and its fallback
     * @return the value with its explanation; it fails only if it is cancelled
     */
    public <T extends Record> CompletableFuture<Decision<T>> decideAsync(
            ModelRequest request, Structure<T> structure) {
        CompletableFuture<Answer> call = sendAsync(structure.asked(request));
        CompletableFuture<Decision<T>> decided = call.handle((answer, error) -> {
            Decision<T> decision =
                    error == null ? structure.decide(answer) : structure.fallback(null, failure(error));
            decision.failure().ifPresent(why -> Observations.fallback(
                    transport.settings().listeners,
                    new CallListener.Start(
                            "chat",
                            request.model(transport.settings().model),
                            transport.settings().base,
                            false),
                    why));
            return decision;
        });
        decided.whenComplete((decision, error) -> {
            if (error != null) {
                call.cancel(true);
            }
        });
        return decided;
    }

    private static EndpointException failure(Throwable error) {
        Throwable cause = error instanceof CompletionException ? error.getCause() : error;
        if (cause instanceof EndpointException known) {
            return known;
        }
        return EndpointException.of(EndpointException.Reason.CANCELLED, "by the caller", cause);
    }

    /**
     * Counts the calls that have not ended.
     *
     * @return number of calls in flight
     */
    public int inFlight() {
        return transport.inFlight();
    }

    /** Cancels all calls and ends the client's threads. */
    @Override
    public void close() {
        transport.requireOtherThread();
        transport.close();
    }

    /** Collects the settings of a client. */
    public static final class Builder {
        private final Settings settings;

        private Builder(URI endpoint) {
            settings = new Settings(endpoint);
        }

        /**
         * Sets the model for requests that name none.
         *
         * @param name name of the model, as the endpoint lists it
         * @return this builder
         */
        public Builder model(String name) {
            settings.model = Objects.requireNonNull(name, "model");
            return this;
        }

        /**
         * Limits each call that sets no deadline of its own.
         *
         * @param limit the limit for everything up to the last byte; without this call, 30 seconds
         * @return this builder
         */
        public Builder deadline(Duration limit) {
            Settings.requirePositive("deadline", limit);
            settings.deadline = limit;
            return this;
        }

        /**
         * Limits the time for a new connection, with TLS.
         *
         * @param limit the limit; without this call, one second
         * @return this builder
         */
        public Builder connectTimeout(Duration limit) {
            Settings.requirePositive("connectTimeout", limit);
            settings.connectTimeout = limit;
            return this;
        }

        /**
         * Limits the calls that run at the same time; each takes a connection. Further calls are rejected at once.
         *
         * @param calls most calls in flight; without this call, 512
         * @return this builder
         */
        public Builder maxInFlight(int calls) {
            Settings.requireRange("maxInFlight", calls, 1, 1_000_000);
            settings.maxInFlight = calls;
            return this;
        }

        /**
         * Limits the attempts of one call, the first included. Hedges do not count.
         *
         * @param attempts most attempts; 1 turns retries off; without this call, 3
         * @return this builder
         */
        public Builder maxAttempts(int attempts) {
            Settings.requireRange("maxAttempts", attempts, 1, 10);
            settings.maxAttempts = attempts;
            return this;
        }

        /**
         * Sets the budget that all calls share for retries. A retry costs 14 tokens, or 5 if the endpoint asked to wait; a
         * success returns what its retry cost, or one token.
         *
         * @param tokens most tokens, and the number at the beginning; without this call, 500
         * @return this builder
         */
        public Builder retryTokens(int tokens) {
            Settings.requireRange("retryTokens", tokens, 0, 1_000_000);
            settings.retryTokens = tokens;
            return this;
        }

        /**
         * Sets when a second request is sent beside one whose answer has not begun. Without this call, it is the time in
         * which 98 % of the last answers began, and the median of them. At most one call in fifty is hedged.
         *
         * @param delay the time
         * @return this builder
         */
        public Builder hedgeAfter(Duration delay) {
            Settings.requirePositive("hedgeAfter", delay);
            settings.hedgeAfter = delay;
            return this;
        }

        /**
         * Sends no second request beside one whose answer has not begun.
         *
         * @return this builder
         */
        public Builder withoutHedging() {
            settings.hedging = false;
            return this;
        }

        /**
         * Limits the length of an answer.
         *
         * @param bytes most bytes of an answer, or of a whole stream with its events; without this call, 16 MiB
         * @return this builder
         */
        public Builder maxAnswerBytes(int bytes) {
            Settings.requireRange("maxAnswerBytes", bytes, 1_024, 1 << 30);
            settings.maxAnswerBytes = bytes;
            return this;
        }

        /**
         * Sets the threads that read answers and complete futures.
         *
         * @param count most threads; without this call, two per processor and at least eight
         * @return this builder
         */
        public Builder threads(int count) {
            Settings.requireRange("threads", count, 1, 1_024);
            settings.threads = count;
            return this;
        }

        /**
         * Uses HTTP/2, where all requests share one connection. For a gateway that distributes requests; behind a network
         * load balancer, one connection reaches one frontend only.
         *
         * @return this builder
         */
        public Builder http2() {
            settings.http2 = true;
            return this;
        }

        /**
         * Sets keys and authorities for TLS.
         *
         * @param context the context; without this call, the process's default
         * @return this builder
         */
        public Builder tls(SSLContext context) {
            settings.tls = Objects.requireNonNull(context, "context");
            return this;
        }

        /**
         * Sets when the client stops calling an endpoint that fails: for {@code pause}, if among the calls of
         * {@code window} so many failed. Then a few calls try again.
         *
         * @param failurePercent share of failures, 1 to 100; without this call, 50
         * @param leastCalls calls that the window must have; without this call, 20
         * @param window length of the window; without this call, 10 seconds
         * @param pause time without calls; without this call, 5 seconds
         * @return this builder
         */
        public Builder circuit(int failurePercent, int leastCalls, Duration window, Duration pause) {
            Settings.requireRange("failurePercent", failurePercent, 1, 100);
            Settings.requireRange("leastCalls", leastCalls, 1, 1_000_000);
            Settings.requirePositive("window", window);
            Settings.requirePositive("pause", pause);
            settings.circuitFailurePercent = failurePercent;
            settings.circuitCalls = leastCalls;
            settings.circuitWindow = window;
            settings.circuitPause = pause;
            return this;
        }

        /**
         * Sets how requests prove who calls.
         *
         * @param chosen the authentication; without this call, none
         * @return this builder
         */
        public Builder authentication(Authentication chosen) {
            settings.authentication = Objects.requireNonNull(chosen, "authentication");
            return this;
        }

        /**
         * Adds a listener, such as those for Micrometer and OpenTelemetry.
         *
         * @param listener hears about every call
         * @return this builder
         */
        public Builder listener(CallListener listener) {
            settings.listeners.add(Objects.requireNonNull(listener, "listener"));
            return this;
        }

        /**
         * Creates the client. It connects at the first call.
         *
         * @return the client
         */
        public EndpointClient build() {
            return new EndpointClient(new Settings(settings));
        }
    }
}
