package inferenceblueprints.enrichment;

import inferenceblueprints.endpoint.Answer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.metrics.Histogram;
import org.apache.flink.streaming.api.functions.async.ResultFuture;
import org.apache.flink.streaming.api.functions.async.RichAsyncFunction;

/**
 * Asks the model for each version. Every call ends with a result: an exception would fail the task. A failure that can pass
 * is the result {@code RETRY}, after which Flink calls again; this class decides which attempt is the last.
 *
 * <p>While the model answers nobody, versions keep their places and are asked again, until their newest event is too old. So
 * they do while a front door does not take the job's key, or the budget of its team is spent.
 */
final class Asking extends RichAsyncFunction<SessionPrompt, Result> {
    private static final long serialVersionUID = 1L;
    private static final long NEVER = -1;
    private static final Failure NO_TIME =
            new Failure(Failure.Kind.FINAL, "timeout", "no time was left for another attempt", 0);

    private final JobConfiguration job;
    private final JobConfiguration.Endpoint endpoint;
    private final ModelCalls calls;
    private transient SharedClient shared;
    private transient NewestVersions newest;
    private transient Histogram callMillis;
    private transient volatile boolean closed;

    Asking(JobConfiguration configuration) {
        job = configuration;
        endpoint = configuration.endpoint();
        calls = new ModelCalls(configuration);
    }

    @Override
    public void open(OpenContext context) {
        shared = SharedClient.open(endpoint);
        newest = NewestVersions.open(job, getRuntimeContext().getTaskInfo());
        JobMetrics metrics = new JobMetrics(getRuntimeContext().getMetricGroup());
        metrics.gauge("inFlight", newest::size);
        callMillis = metrics.quantiles("callMillis");
    }

    @Override
    public void close() {
        closed = true;
        if (newest != null) {
            newest.close();
        }
        if (shared != null) {
            shared.close();
        }
    }

    @Override
    public void asyncInvoke(SessionPrompt version, ResultFuture<Result> result) {
        NewestVersions.Entry entry = newest.begin(version.key(), version.version());
        Duration left = left(entry);
        if (newest.isSuperseded(entry) || left.isNegative() || left.isZero()) {
            result.complete(List.of(finished(version, entry, NO_TIME)));
            return;
        }
        String missing = shared.missingKey();
        if (missing != null) {
            repeatOrEnd(version, entry, new DoorKey.MissingException(missing), result);
            return;
        }
        CompletableFuture<Answer> call = shared.client().sendAsync(calls.request(version, left));
        newest.sent(entry, call);
        call.whenComplete((answer, error) -> {
            if (closed) {
                // The call is in the snapshot, and is sent again after a restore.
                return;
            }
            if (error == null) {
                result.complete(List.of(answered(version, entry, answer)));
            } else {
                repeatOrEnd(version, entry, error instanceof CompletionException ? error.getCause() : error, result);
            }
        });
    }

    private void repeatOrEnd(
            SessionPrompt version, NewestVersions.Entry entry, Throwable error, ResultFuture<Result> result) {
        Failure failure = Failure.of(error, endpoint.door() != null);
        long pause = newest.isSuperseded(entry) ? NEVER : pause(version, entry, failure);
        if (pause == NEVER) {
            result.complete(List.of(finished(version, entry, failure)));
            return;
        }
        Result retry = ModelCalls.ended(
                version, Result.Outcome.RETRY, failure.reason(), failure.message(), newest.attempts(entry), 0);
        CompletableFuture.delayedExecutor(pause, TimeUnit.MILLISECONDS, Runnable::run)
                .execute(() -> result.complete(List.of(retry)));
    }

    private Result answered(SessionPrompt version, NewestVersions.Entry entry, Answer answer) {
        newest.end(version.key(), version.version());
        long millis = millis(entry);
        newest.answered();
        callMillis.update(millis);
        return calls.answered(version, answer, newest.attempts(entry), millis);
    }

    private Result finished(SessionPrompt version, NewestVersions.Entry entry, Failure failure) {
        newest.end(version.key(), version.version());
        boolean superseded = newest.isSuperseded(entry);
        return ModelCalls.ended(
                version,
                superseded ? Result.Outcome.SUPERSEDED : Result.Outcome.FAILED,
                superseded ? "" : failure.reason(),
                failure.message(),
                newest.attempts(entry),
                millis(entry));
    }

    private static long millis(NewestVersions.Entry entry) {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - entry.began);
    }

    private Duration left(NewestVersions.Entry entry) {
        return Duration.ofMillis(endpoint.deadlineMillis()).minusNanos(newest.nanosOfRound(entry));
    }

    /** Returns the milliseconds before the next attempt, besides Flink's own pause; {@code NEVER} if there is none. */
    private long pause(SessionPrompt version, NewestVersions.Entry entry, Failure failure) {
        if (failure.kind() == Failure.Kind.FINAL) {
            return NEVER;
        }
        long backoff = Retries.longestBackoffMillis(newest.attempts(entry));
        long until = version.newestEvent() + endpoint.patience() - backoff - System.currentTimeMillis();
        boolean waits = failure.kind() == Failure.Kind.WAITING && until > 0;
        if (!waits
                && newest.attemptsOfRound(entry) < endpoint.attempts()
                && left(entry).toMillis() > failure.pauseMillis() + backoff) {
            return failure.pauseMillis();
        }
        // A call that takes too long while others are answered is a matter of its own prompt.
        boolean away = failure.kind() != Failure.Kind.SLOW || !newest.hasAnsweredSince(entry);
        if (!away || until <= 0) {
            return NEVER;
        }
        newest.waitForModel(entry);
        return Math.min(failure.pauseMillis(), until);
    }

    /** Flink's limit is later than this class's own deadline: it ends what got no result by a defect. */
    @Override
    public void timeout(SessionPrompt version, ResultFuture<Result> result) {
        NewestVersions.Entry entry = newest.end(version.key(), version.version());
        int attempts = entry == null ? 0 : newest.attempts(entry);
        result.complete(List.of(ModelCalls.ended(
                version,
                Result.Outcome.FAILED,
                "timeout",
                "the call did not end",
                attempts,
                endpoint.deadlineMillis())));
    }
}
