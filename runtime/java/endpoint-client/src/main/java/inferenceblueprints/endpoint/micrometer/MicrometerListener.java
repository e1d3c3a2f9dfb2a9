package inferenceblueprints.endpoint.micrometer;

import inferenceblueprints.endpoint.CallListener;
import inferenceblueprints.endpoint.EndpointException;
import inferenceblueprints.endpoint.Usage;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Records calls as metrics. Tags: {@code operation}, {@code model} and, for calls, {@code outcome}.
 *
 * <table>
 * <caption>Metrics</caption>
 * <tr><th>Name</th><th>Meaning</th></tr>
 * <tr><td>{@code inference.client.calls}</td><td>timer of whole calls</td></tr>
 * <tr><td>{@code inference.client.first.byte}</td><td>timer up to the first byte of an answer</td></tr>
 * <tr><td>{@code inference.client.in.flight}</td><td>gauge of calls that have not ended</td></tr>
 * <tr><td>{@code inference.client.retries}, {@code inference.client.hedges}</td><td>counters of further requests</td></tr>
 * <tr><td>{@code inference.client.fallbacks}</td><td>counter of structured calls without a usable answer; tag {@code reason}
 * </td></tr>
 * <tr><td>{@code inference.client.tokens}</td><td>counter; tag {@code kind}: prompt, cached or answer</td></tr>
 * </table>
 */
public final class MicrometerListener implements CallListener {
    private static final String PREFIX = "inference.client.";

    private final MeterRegistry registry;
    private final AtomicInteger inFlight;

    /**
     * Creates the listener.
     *
     * @param registry holds the metrics
     */
    public MicrometerListener(MeterRegistry registry) {
        this.registry = Objects.requireNonNull(registry, "registry");
        inFlight = registry.gauge(PREFIX + "in.flight", new AtomicInteger());
    }

    @Override
    public Observation begin(Start start) {
        inFlight.incrementAndGet();
        return end -> record(start, end);
    }

    private void record(Start start, End end) {
        inFlight.decrementAndGet();
        Tags tags = tags(start);
        timer("calls", tags.and("outcome", end.outcome())).record(end.duration());
        end.firstByte().ifPresent(time -> timer("first.byte", tags).record(time));
        counter("retries", tags).increment(Math.max(0, end.attempts() - 1 - end.hedges()));
        counter("hedges", tags).increment(end.hedges());
        end.answer().ifPresent(answer -> {
            Usage usage = answer.usage();
            counter("tokens", tags.and("kind", "prompt")).increment(usage.promptTokens());
            counter("tokens", tags.and("kind", "cached")).increment(usage.cachedTokens());
            counter("tokens", tags.and("kind", "answer")).increment(usage.answerTokens());
        });
    }

    @Override
    public void fallback(Start start, EndpointException failure) {
        String reason = failure.reason().name().toLowerCase(Locale.ROOT);
        counter("fallbacks", tags(start).and("reason", reason)).increment();
    }

    private static Tags tags(Start start) {
        return Tags.of("operation", start.operation(), "model", start.model());
    }

    private Timer timer(String name, Tags tags) {
        return Timer.builder(PREFIX + name).tags(tags).publishPercentileHistogram().register(registry);
    }

    private Counter counter(String name, Tags tags) {
        return registry.counter(PREFIX + name, tags);
    }
}
