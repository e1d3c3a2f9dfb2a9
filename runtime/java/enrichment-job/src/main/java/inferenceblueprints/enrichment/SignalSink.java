package inferenceblueprints.enrichment;

import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.metrics.Histogram;
import org.apache.flink.metrics.MetricGroup;

/**
 * Makes answers visible. It needs no state: the store refuses versions that are not newer, so writing again after a restore
 * changes nothing. A checkpoint waits for all writes before it. A write that fails is repeated for some time; then the task
 * fails and restarts.
 */
final class SignalSink implements Sink<Result> {
    private static final long serialVersionUID = 1L;

    private final JobConfiguration configuration;

    SignalSink(JobConfiguration configuration) {
        this.configuration = configuration;
    }

    @Override
    public SinkWriter<Result> createWriter(WriterInitContext context) {
        return new Writer(SignalWrites.open(configuration), context.metricGroup());
    }

    private static final class Writer implements SinkWriter<Result> {
        private static final int MOST_WRITES = 512;
        private static final long FIRST_PAUSE_MILLIS = 50;
        private static final long LONGEST_PAUSE_MILLIS = 2_000;
        private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(30);

        private final SignalWrites store;
        private final Semaphore free = new Semaphore(MOST_WRITES);
        private final AtomicReference<Throwable> failure = new AtomicReference<>();
        private final Histogram storeMillis;
        private final Histogram eventToSignalMillis;
        private volatile boolean closed;

        Writer(SignalWrites store, MetricGroup metrics) {
            this.store = store;
            JobMetrics own = new JobMetrics(metrics);
            storeMillis = own.quantiles("storeMillis");
            eventToSignalMillis = own.quantiles("eventToSignalMillis");
        }

        @Override
        public void write(Result result, Context context) throws IOException, InterruptedException {
            free.acquire();
            check();
            write(result, System.nanoTime(), FIRST_PAUSE_MILLIS);
        }

        private void write(Result result, long began, long pause) {
            store.write(result).whenComplete((written, error) -> {
                if (error == null) {
                    storeMillis.update(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began));
                    if (written) {
                        eventToSignalMillis.update(System.currentTimeMillis() - result.prompt().newestEvent());
                    }
                    free.release();
                } else if (closed || System.nanoTime() - began > PATIENCE_NANOS) {
                    failure.compareAndSet(null, error instanceof CompletionException ? error.getCause() : error);
                    free.release();
                } else {
                    CompletableFuture.delayedExecutor(pause, TimeUnit.MILLISECONDS)
                            .execute(() -> write(result, began, Math.min(2 * pause, LONGEST_PAUSE_MILLIS)));
                }
            });
        }

        @Override
        public void flush(boolean end) throws IOException, InterruptedException {
            free.acquire(MOST_WRITES);
            free.release(MOST_WRITES);
            check();
        }

        private void check() throws IOException {
            Throwable error = failure.get();
            if (error != null) {
                throw new IOException("the signal store takes no writes: " + error.getMessage(), error);
            }
        }

        @Override
        public void close() {
            closed = true;
            store.close();
        }
    }
}
