package inferenceblueprints.endpoint;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Tokens for retries of all calls, so that retries do not multiply the load of an endpoint that fails.
 *
 * <p>The scheme and the costs are those of the AWS SDKs' standard retry mode in its version 2.1 (500 tokens; 14 a retry,
 * 5 after throttling; a success returns them): https://github.com/aws/aws-sdk-java-v2/pull/6925.
 */
final class RetryBudget {
    static final int COST = 14;
    static final int COST_THROTTLED = 5;

    private final int capacity;
    private final AtomicInteger tokens;

    RetryBudget(int capacity) {
        this.capacity = capacity;
        this.tokens = new AtomicInteger(capacity);
    }

    /** Takes tokens for a retry; false if there are too few. */
    boolean take(int cost) {
        return tokens.getAndUpdate(now -> now < cost ? now : now - cost) >= cost;
    }

    /** Returns the tokens of a retry that succeeded, or one for a success at the first attempt. */
    void succeeded(int lastCost) {
        int returned = Math.max(1, lastCost);
        if (tokens.get() < capacity) {
            tokens.updateAndGet(now -> Math.min(capacity, now + returned));
        }
    }
}
