package inferenceblueprints.endpoint;

import inferenceblueprints.endpoint.EndpointException.Reason;
import java.net.URI;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** What all calls of a client share: connections, threads, timers, and the limits over all calls. */
final class Transport {
    private static final String IDLE_SECONDS = "30";
    private static final AtomicInteger CLIENTS = new AtomicInteger();

    static {
        // JDK 17 keeps idle connections for 20 minutes, longer than load balancers do (350 s for an NLB); since 20 it is 30 s.
        // The JDK reads this once per process, and for all its clients. A value that is set already stays.
        if (System.getProperty("jdk.httpclient.keepalive.timeout") == null) {
            System.setProperty("jdk.httpclient.keepalive.timeout", IDLE_SECONDS);
        }
    }

    /** A thread of a client, on which nothing may block. */
    private static final class ClientThread extends Thread {
        private final Transport owner;

        ClientThread(Transport owner, Runnable work, String name) {
            super(work, name);
            this.owner = owner;
            setDaemon(true);
        }
    }

    private final Settings settings;
    private final URI chat;
    private final URI completions;
    private final ExecutorService pool;
    private final ScheduledThreadPoolExecutor timers;
    private final Semaphore permits;
    private final Set<Call> calls = ConcurrentHashMap.newKeySet();
    private final RetryBudget budget;
    private final Hedging wholeHedging;
    private final Hedging streamHedging;
    private final Breaker breaker;
    private volatile HttpClient http;

    Transport(Settings settings) {
        this.settings = settings;
        chat = URI.create(settings.base + "/chat/completions");
        completions = URI.create(settings.base + "/completions");
        String name = "endpoint-client-" + CLIENTS.incrementAndGet();
        AtomicInteger threads = new AtomicInteger();
        ThreadFactory factory = work -> new ClientThread(this, work, name + "-" + threads.incrementAndGet());
        pool = Executors.newFixedThreadPool(settings.threads, factory);
        timers = new ScheduledThreadPoolExecutor(1, work -> new ClientThread(this, work, name + "-timer"));
        timers.setRemoveOnCancelPolicy(true);
        permits = new Semaphore(settings.maxInFlight);
        budget = new RetryBudget(settings.retryTokens);
        wholeHedging = new Hedging(settings.hedgeAfter);
        streamHedging = new Hedging(settings.hedgeAfter);
        breaker = new Breaker(settings);
        HttpClient.Builder builder = HttpClient.newBuilder()
                // HTTP_2 would send an upgrade with each request without TLS, which some servers reject, and would put all
                // requests on one connection, and so on one frontend behind a network load balancer.
                .version(settings.http2 ? HttpClient.Version.HTTP_2 : HttpClient.Version.HTTP_1_1)
                .connectTimeout(settings.connectTimeout)
                .followRedirects(HttpClient.Redirect.NEVER)
                .executor(pool);
        if (settings.tls != null) {
            builder.sslContext(settings.tls);
        }
        http = builder.build();
    }

    /** Takes a place for a call. Returns why there is none, or null. */
    EndpointException admit(Call call) {
        if (http == null) {
            return EndpointException.of(Reason.CLOSED, "the client is closed");
        }
        if (!permits.tryAcquire()) {
            String message = "nothing was sent: " + settings.maxInFlight + " calls are in flight (maxInFlight)";
            return EndpointException.of(Reason.TOO_MANY_IN_FLIGHT, message);
        }
        calls.add(call);
        if (http == null) { // closed in between, perhaps after close() looked for calls
            leave(call);
            return EndpointException.of(Reason.CLOSED, "the client is closed");
        }
        return null;
    }

    void leave(Call call) {
        if (calls.remove(call)) {
            permits.release();
        }
    }

    int inFlight() {
        return calls.size();
    }

    /** Runs an action later, on a thread where callbacks may run too. */
    Future<?> later(long nanos, Runnable action) {
        Executor threads = pool;
        try {
            return timers.schedule(() -> run(threads, action), nanos, TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException closed) {
            return java.util.concurrent.CompletableFuture.completedFuture(null); // close() ends the calls
        }
    }

    /** Counts the timers that wait. A cancelled one is not kept until its time. */
    int timers() {
        return timers.getQueue().size();
    }

    private static void run(Executor threads, Runnable action) {
        try {
            threads.execute(action);
        } catch (RejectedExecutionException closed) {
            action.run();
        }
    }

    void requireOtherThread() {
        if (Thread.currentThread() instanceof ClientThread thread && thread.owner == this) {
            throw new IllegalStateException(
                    "a blocking call on a thread of this client could wait for itself: use sendAsync, or run the callback"
                            + " with thenApplyAsync on an executor of your own");
        }
    }

    String requestId() {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        long high = random.nextLong() & ~0xF000L | 0x4000L;
        long low = random.nextLong() & ~(3L << 62) | 1L << 63;
        return new UUID(high, low).toString();
    }

    Settings settings() {
        return settings;
    }

    HttpClient http() {
        HttpClient open = http;
        if (open == null) {
            throw EndpointException.of(Reason.CLOSED, "the client is closed");
        }
        return open;
    }

    URI chat() {
        return chat;
    }

    URI completions() {
        return completions;
    }

    RetryBudget budget() {
        return budget;
    }

    Hedging hedging(boolean streamed) {
        return streamed ? streamHedging : wholeHedging;
    }

    Breaker breaker() {
        return breaker;
    }

    /** Cancels all calls and ends the threads. JDK 17 closes idle connections when the garbage collector finds the client. */
    void close() {
        HttpClient open = http;
        http = null;
        for (Call call : calls) {
            call.finish(null, EndpointException.of(Reason.CLOSED, "the client was closed"));
        }
        timers.shutdownNow();
        if (open instanceof AutoCloseable closeable) {
            closeQuietly(closeable);
        }
        pool.shutdown();
    }

    private static void closeQuietly(AutoCloseable closeable) {
        try {
            closeable.close(); // since JDK 21
        } catch (Exception error) {
            System.getLogger(EndpointClient.class.getName())
                    .log(System.Logger.Level.WARNING, "the HTTP client did not close", error);
        }
    }

    Duration deadline(ModelRequest request) {
        return request.deadline(settings.deadline);
    }
}
