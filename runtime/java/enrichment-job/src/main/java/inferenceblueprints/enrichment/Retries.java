package inferenceblueprints.enrichment;

import java.io.Serializable;
import java.util.Collection;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Predicate;
import org.apache.flink.streaming.api.functions.async.AsyncRetryPredicate;
import org.apache.flink.streaming.api.functions.async.AsyncRetryStrategy;

/** Repeats calls whose result says so, after a random pause that grows. */
final class Retries implements AsyncRetryStrategy<Result>, AsyncRetryPredicate<Result>, Serializable {
    private static final long serialVersionUID = 1L;
    private static final long FIRST_MILLIS = 100;
    private static final int MOST_DOUBLINGS = 5;

    static long longestBackoffMillis(int attempts) {
        return FIRST_MILLIS << Math.max(0, Math.min(attempts - 1, MOST_DOUBLINGS));
    }

    @Override
    public boolean canRetry(int attempts) {
        return true;
    }

    @Override
    public long getBackoffTimeMillis(int attempts) {
        long longest = longestBackoffMillis(attempts);
        return ThreadLocalRandom.current().nextLong(longest / 2, longest + 1);
    }

    @Override
    public AsyncRetryPredicate<Result> getRetryPredicate() {
        return this;
    }

    @Override
    public Optional<Predicate<Collection<Result>>> resultPredicate() {
        return Optional.of(results -> results.stream().anyMatch(each -> each.outcome() == Result.Outcome.RETRY));
    }

    @Override
    public Optional<Predicate<Throwable>> exceptionPredicate() {
        return Optional.empty();
    }
}
