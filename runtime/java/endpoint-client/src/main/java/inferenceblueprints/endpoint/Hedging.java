package inferenceblueprints.endpoint;

import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Decides when a call sends a second request, and keeps these below two percent of all calls.
 *
 * <p>Without a fixed delay it is the time in which 98 % of the last answers began, and the median of them: a second
 * request takes about the median, so before that the first one would mostly win. Each call earns a fiftieth of a hedge, and
 * unused ones are kept for at most {@link #MOST_SAVED}, so a burst of slow answers cannot double the load.
 */
final class Hedging {
    private static final int CALLS_PER_HEDGE = 50;
    private static final int MOST_SAVED = 10;
    private static final int SAMPLES = 1024;
    private static final int LEAST_SAMPLES = 100;
    private static final int RENEWED_EVERY = 64;
    private static final double QUANTILE = 0.98;

    private final long fixedNanos;
    private final AtomicInteger earned = new AtomicInteger();
    private final long[] samples = new long[SAMPLES];
    private final AtomicLong count = new AtomicLong();
    private volatile long learnedNanos = Long.MAX_VALUE;

    Hedging(Duration fixed) {
        fixedNanos = fixed == null ? 0 : fixed.toNanos();
    }

    /** A call began: returns how long to wait for its first byte, or Long.MAX_VALUE if nobody knows yet. */
    long delayNanos() {
        earned.updateAndGet(now -> Math.min(now + 1, MOST_SAVED * CALLS_PER_HEDGE));
        return fixedNanos > 0 ? fixedNanos : learnedNanos;
    }

    /** Takes one hedge; false if the calls so far have not earned it. */
    boolean take() {
        int before = earned.getAndUpdate(now -> now < CALLS_PER_HEDGE ? now : now - CALLS_PER_HEDGE);
        return before >= CALLS_PER_HEDGE;
    }

    /** Learns how long a first byte took. A sample that two threads write at once is lost, which does not matter. */
    void learn(long nanos) {
        if (fixedNanos > 0) {
            return;
        }
        long number = count.getAndIncrement();
        samples[(int) (number % SAMPLES)] = nanos;
        if (number + 1 >= LEAST_SAMPLES && (number + 1) % RENEWED_EVERY == 0) {
            long[] sorted = Arrays.copyOf(samples, (int) Math.min(number + 1, SAMPLES));
            Arrays.sort(sorted);
            learnedNanos = quantile(sorted, QUANTILE) + quantile(sorted, 0.5);
        }
    }

    private static long quantile(long[] sorted, double share) {
        return sorted[(int) (share * (sorted.length - 1))];
    }
}
