package inferenceblueprints.enrichment;

import inferenceblueprints.endpoint.Answer;
import inferenceblueprints.endpoint.EndpointException;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
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
 * <p>While the model answers nobody, versions keep their places and are asked again, until their newest event is too old.
 */
final class Asking extends RichAsyncFunction<SessionPrompt, Result> {
    private static final long serialVersionUID = 1L;

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
            result.complete(List.of(finished(version, entry, null, "no time was left for another attempt", "timeout")));
            return;
        }
        CompletableFuture<Answer> call = shared.client().sendAsync(calls.request(version, left));
        newest.sent(entry, call);
        call.whenComplete((answer, error) -> {
            if (closed) {
                // The call is in the snapshot, and is sent again after a restore.
                return;
            }
            Throwable cause = error instanceof CompletionException ? error.getCause() : error;
            if (error == null || newest.isSuperseded(entry) || !mayRetry(version, entry, cause)) {
                result.complete(List.of(finished(version, entry, answer, words(cause), ModelCalls.reason(cause))));
                return;
            }
            Result retry = ModelCalls.ended(
                    version,
                    Result.Outcome.RETRY,
                    ModelCalls.reason(cause),
                    words(cause),
                    newest.attempts(entry),
                    0);
            CompletableFuture.delayedExecutor(asked(cause), TimeUnit.MILLISECONDS, Runnable::run)
                    .execute(() -> result.complete(List.of(retry)));
        });
    }

    private Result finished(
            SessionPrompt version, NewestVersions.Entry entry, Answer answer, String message, String reason) {
        newest.end(version.key(), version.version());
        long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - entry.began);
        int attempts = newest.attempts(entry);
        if (answer != null) {
            newest.answered();
            callMillis.update(millis);
            return calls.answered(version, answer, attempts, millis);
        }
        boolean superseded = newest.isSuperseded(entry);
        Result.Outcome outcome = superseded ? Result.Outcome.SUPERSEDED : Result.Outcome.FAILED;
        return ModelCalls.ended(version, outcome, superseded ? "" : reason, message, attempts, millis);
    }

    private Duration left(NewestVersions.Entry entry) {
        return Duration.ofMillis(endpoint.deadlineMillis()).minusNanos(newest.nanosOfRound(entry));
    }

    private boolean mayRetry(SessionPrompt version, NewestVersions.Entry entry, Throwable error) {
        if (!(error instanceof EndpointException failure) || !failure.isTransient()) {
            return false;
        }
        long pause = asked(error) + Retries.longestBackoffMillis(newest.attempts(entry));
        if (newest.attemptsOfRound(entry) < endpoint.attempts() && left(entry).toMillis() > pause) {
            return true;
        }
        // A call that takes too long while others are answered is a matter of its own prompt.
        boolean away = failure.reason() != EndpointException.Reason.DEADLINE || !newest.hasAnsweredSince(entry);
        if (!away || System.currentTimeMillis() + pause >= version.newestEvent() + endpoint.patience()) {
            return false;
        }
        newest.waitForModel(entry);
        return true;
    }

    /** Returns for how long the endpoint asks callers to wait, in milliseconds. */
    private static long asked(Throwable error) {
        return error instanceof EndpointException failure
                ? failure.retryAfter().map(Duration::toMillis).orElse(0L)
                : 0;
    }

    private static String words(Throwable error) {
        return error == null ? "" : Objects.requireNonNullElse(error.getMessage(), error.toString());
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
