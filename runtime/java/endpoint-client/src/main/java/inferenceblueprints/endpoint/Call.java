package inferenceblueprints.endpoint;

import inferenceblueprints.endpoint.EndpointException.Reason;
import java.io.IOException;
import java.net.http.HttpRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import javax.net.ssl.SSLException;

/**
 * One call with all its requests on the wire: the first, retries after failures, and at most one hedge beside the first.
 *
 * <p>The state changes under the lock of this object. Requests are sent and cancelled, and results completed, outside it.
 */
final class Call {
    private static final int UNAUTHORIZED = 401;

    private final Transport transport;
    private final ModelRequest request;
    private final byte[] body;
    private final Consumer<String> onText;
    private final Observations observations;
    private final CompletableFuture<Answer> result = new CompletableFuture<>();
    private final long began = System.nanoTime();
    private final long deadlineNanos;

    private final List<Attempt> running = new ArrayList<>(2);
    private final List<Future<?>> timers = new ArrayList<>(2);
    private Attempt answering;
    private EndpointException lastFailure;
    private int sent;
    private int retries;
    private int hedges;
    private int lastCost;
    private long firstByteNanos = -1;
    private boolean delivered;
    private boolean asksWhoCalls;
    private boolean done;

    /** @param onText gets the parts of a streamed answer; null for a complete one */
    Call(Transport transport, ModelRequest request, Consumer<String> onText) {
        this.transport = transport;
        this.request = request;
        this.onText = onText;
        Settings settings = transport.settings();
        body = request.body(settings.model, onText != null);
        deadlineNanos = request.deadline(settings.deadline).toNanos();
        observations = Observations.begin(
                settings.listeners,
                new CallListener.Start(
                        isChat() ? "chat" : "text_completion",
                        request.model(settings.model),
                        settings.base,
                        isStreamed()));
    }

    CompletableFuture<Answer> start() {
        EndpointException refused = transport.admit(this);
        if (refused != null) {
            observations.end(new CallListener.End(
                    Duration.ZERO, Optional.empty(), 0, 0, Optional.empty(),
                    Optional.of(refused)));
            result.completeExceptionally(refused);
            return result;
        }
        // The caller may cancel the result, or complete it with orTimeout: both cancel the request.
        result.whenComplete((answer, error) -> leaveAtOnce());
        // One timer at a time: nearly all calls end before their hedge, and then need none for the deadline.
        long hedgeAfter = mayHedge() ? transport.hedging(isStreamed()).delayNanos() : Long.MAX_VALUE;
        if (hedgeAfter < deadlineNanos) {
            timer(hedgeAfter, () -> {
                timer(deadlineNanos - (System.nanoTime() - began), this::expire);
                hedge();
            });
        } else {
            timer(deadlineNanos, this::expire);
        }
        send(false);
        return result;
    }

    boolean isStreamed() {
        return onText != null;
    }

    boolean isChat() {
        return request.isChat();
    }

    int maxAnswerBytes() {
        return transport.settings().maxAnswerBytes;
    }

    private boolean mayHedge() {
        // The worker of a session would get the same request twice.
        return transport.settings().hedging && request.isRepeatable() && request.session() == null;
    }

    private void timer(long nanos, Runnable action) {
        Future<?> timer = transport.later(nanos, action);
        synchronized (this) {
            if (!done) {
                timers.add(timer);
                return;
            }
        }
        timer.cancel(false);
    }

    private void leaveAtOnce() {
        synchronized (this) {
            if (done) {
                return;
            }
        }
        finish(null, EndpointException.of(Reason.CANCELLED, "by the caller"));
    }

    private void expire() {
        long millis = TimeUnit.NANOSECONDS.toMillis(deadlineNanos);
        String cause;
        synchronized (this) {
            cause = lastFailure == null ? "" : "; the last attempt failed: " + lastFailure.getMessage();
        }
        finish(null, EndpointException.of(Reason.DEADLINE, "no complete answer within " + millis + " ms" + cause));
    }

    private void hedge() {
        synchronized (this) {
            boolean waiting = !done && running.size() == 1 && answering == null;
            if (!waiting || !transport.breaker().isClosed() || !transport.hedging(isStreamed()).take()) {
                return;
            }
        }
        send(true);
    }

    private void send(boolean hedge) {
        if (!transport.breaker().tryAcquire()) {
            Duration remaining = transport.breaker().remaining();
            String message = "the endpoint failed too often; next attempt in " + remaining.toMillis() + " ms";
            if (!hedge) {
                finish(null, EndpointException.circuitOpen(message, remaining, lastFailure));
            }
            return;
        }
        Attempt attempt;
        synchronized (this) {
            boolean late = hedge && (answering != null || running.isEmpty());
            if (done || late) {
                transport.breaker().withoutResult();
                return;
            }
            attempt = new Attempt(this, ++sent);
            hedges += hedge ? 1 : 0;
            running.add(attempt);
        }
        try {
            attempt.send(transport.http(), wire(attempt, hedge));
        } catch (RuntimeException error) {
            ended(attempt, null, error);
        }
    }

    private HttpRequest wire(Attempt attempt, boolean hedge) {
        Settings settings = transport.settings();
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("Content-Type", "application/json");
        headers.put("Accept", isStreamed() ? "text/event-stream" : "application/json");
        headers.put(RequestHeaders.REQUEST_ID, transport.requestId());
        headers.putAll(request.routing());
        observations.attempt(attempt.number, hedge, headers::put);
        var uri = isChat() ? transport.chat() : transport.completions();
        attempt.authentication = settings.authentication.headers(uri, Map.copyOf(headers), body);
        headers.putAll(attempt.authentication);
        HttpRequest.Builder builder = HttpRequest.newBuilder(uri);
        headers.forEach(builder::header);
        return builder.POST(HttpRequest.BodyPublishers.ofByteArray(body)).build();
    }

    /** An attempt received the header of a good answer: others are no longer needed. */
    void answers(Attempt attempt) {
        List<Attempt> others = new ArrayList<>(running.size());
        synchronized (this) {
            if (answering != null || done) {
                return;
            }
            answering = attempt;
            firstByteNanos = System.nanoTime() - began;
            running.stream().filter(each -> each != attempt).forEach(others::add);
            running.removeAll(others); // whatever they still bring is too late
        }
        transport.hedging(isStreamed()).learn(firstByteNanos);
        others.forEach(Attempt::cancel);
    }

    /** Hands a part of a stream to the caller, unless it comes from an attempt that lost. */
    void deliver(Attempt attempt, String text) {
        synchronized (this) {
            if (done || answering != attempt) {
                return;
            }
            delivered = true;
        }
        onText.accept(text);
    }

    /** An attempt has ended, with an answer or an error. Each attempt says so once. */
    void ended(Attempt attempt, Answer answer, Throwable error) {
        EndpointException failure = error == null ? null : failure(error);
        record(failure);
        Duration delay = null;
        boolean unknown = false;
        int paid = 0;
        synchronized (this) {
            boolean lost = !running.remove(attempt);
            if (done || lost) {
                return;
            }
            if (failure != null) {
                lastFailure = failure;
                answering = answering == attempt ? null : answering;
                if (!running.isEmpty()) {
                    return; // the other attempt may still answer
                }
                unknown = failure.status() == UNAUTHORIZED && !asksWhoCalls;
                asksWhoCalls |= unknown;
                delay = retryDelay(failure);
            } else {
                paid = lastCost;
            }
        }
        if (failure == null) {
            transport.budget().succeeded(paid);
            finish(answer, null);
        } else if (unknown) {
            authenticate(attempt, failure);
        } else if (delay == null) {
            finish(null, failure);
        } else {
            timer(delay.toNanos(), () -> send(false));
        }
    }

    /** Sends the request once more at once, if the authentication has another proof of who calls. */
    private void authenticate(Attempt attempt, EndpointException failure) {
        // A source of tokens may block, and this thread belongs to the client.
        CompletableFuture.supplyAsync(
                        () -> transport.settings().authentication.refused(attempt.authentication))
                .whenComplete((again, error) -> {
                    if (error == null && again) {
                        send(false);
                    } else {
                        finish(null, failure);
                    }
                });
    }

    /** Returns the time before the next retry, or null if there is none. The caller holds the lock. */
    private Duration retryDelay(EndpointException failure) {
        boolean passing = failure.reason() == Reason.CONNECTION || failure.reason() == Reason.UNAVAILABLE;
        boolean broken = failure.getCause() instanceof SSLException;
        int most = transport.settings().maxAttempts - 1;
        if (!passing || broken || delivered || !request.isRepeatable() || retries >= most) {
            return null;
        }
        Duration asked = failure.retryAfter().orElse(null);
        boolean throttled = failure.status() == 429 || asked != null;
        Duration delay = RetryDelay.before(retries + 1, throttled, asked);
        if (delay.toNanos() >= deadlineNanos - (System.nanoTime() - began)) {
            return null; // the caller learns at once what it would learn at the deadline
        }
        int cost = throttled ? RetryBudget.COST_THROTTLED : RetryBudget.COST;
        if (!transport.budget().take(cost)) {
            return null;
        }
        lastCost = cost;
        retries++;
        return delay;
    }

    private void record(EndpointException failure) {
        if (failure == null) {
            transport.breaker().succeeded();
            return;
        }
        switch (failure.reason()) {
            case CONNECTION -> transport.breaker().failed();
            case UNAVAILABLE, REFUSED -> {
                // 429 is the caller's own rate, and other 4xx are its mistakes: the endpoint works.
                if (failure.status() >= 500 || failure.status() == 0 || failure.status() == 408) {
                    transport.breaker().failed();
                } else {
                    transport.breaker().succeeded();
                }
            }
            case CANCELLED -> {
                if (expired()) {
                    transport.breaker().failed();
                } else {
                    transport.breaker().withoutResult();
                }
            }
            default -> transport.breaker().succeeded();
        }
    }

    /** Tells whether the call ended at its deadline without a byte of an answer. */
    private synchronized boolean expired() {
        return done && firstByteNanos < 0 && System.nanoTime() - began >= deadlineNanos;
    }

    private static EndpointException failure(Throwable error) {
        Throwable cause = error;
        while (cause instanceof CompletionException && cause.getCause() != null) {
            cause = cause.getCause();
        }
        // The JDK wraps exceptions of a body's reader in an IOException.
        for (Throwable each = cause; each != null; each = each.getCause()) {
            if (each instanceof EndpointException known) {
                return known;
            }
            if (each instanceof AnswerBody.TooLongException) {
                return AnswerReader.invalid(each.getMessage(), cause);
            }
            if (each instanceof CancellationException) {
                return EndpointException.of(Reason.CANCELLED, "the request was cancelled", cause);
            }
        }
        if (cause instanceof IOException) {
            String words = cause.getMessage() == null ? cause.getClass().getSimpleName() : cause.getMessage();
            String begin = cause instanceof SSLException ? "TLS with the endpoint failed: " : "";
            return EndpointException.of(Reason.CONNECTION, begin + words, cause);
        }
        return EndpointException.of(Reason.INVALID_ANSWER, "a callback or the client failed: " + cause, cause);
    }

    /** Ends the call once; later calls have no effect. */
    void finish(Answer answer, EndpointException failure) {
        List<Attempt> left;
        CallListener.End end;
        synchronized (this) {
            if (done) {
                return;
            }
            done = true;
            timers.forEach(each -> each.cancel(false));
            left = List.copyOf(running);
            end = new CallListener.End(
                    Duration.ofNanos(System.nanoTime() - began),
                    firstByteNanos < 0
                            ? Optional.empty()
                            : Optional.of(Duration.ofNanos(firstByteNanos)),
                    sent,
                    hedges,
                    Optional.ofNullable(answer),
                    Optional.ofNullable(failure));
        }
        left.forEach(Attempt::cancel);
        transport.leave(this);
        observations.end(end);
        if (failure == null) {
            result.complete(answer);
        } else {
            result.completeExceptionally(failure);
        }
    }
}
