package inferenceblueprints.enrichment;

import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.metrics.Counter;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.util.Collector;

/** Passes answers on, turns failures into dead letters, and counts. */
final class Sorting extends ProcessFunction<Result, Result> {
    private static final long serialVersionUID = 1L;

    private final ModelCalls calls;
    private transient Counter answered;
    private transient Counter superseded;

    Sorting(JobConfiguration configuration) {
        calls = new ModelCalls(configuration);
    }

    @Override
    public void open(OpenContext context) {
        JobMetrics metrics = new JobMetrics(getRuntimeContext().getMetricGroup());
        answered = metrics.counter("answered");
        superseded = metrics.counter("superseded");
    }

    @Override
    public void processElement(Result result, Context context, Collector<Result> answers) {
        switch (result.outcome()) {
            case ANSWERED -> {
                answered.inc();
                answers.collect(result);
            }
            case SUPERSEDED -> superseded.inc();
            case RETRY, FAILED -> context.output(EnrichmentJob.REJECTED, rejected(result));
        }
    }

    private Rejected rejected(Result result) {
        return calls.rejected(result.prompt(), result.reason(), result.message(), result.time(), result.attempts());
    }
}
