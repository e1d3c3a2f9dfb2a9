package inferenceblueprints.enrichment;

import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.metrics.Counter;

/** Counts dead letters on their way to the topic. */
final class Counting extends RichMapFunction<Rejected, Rejected> {
    private static final long serialVersionUID = 1L;

    private transient Counter deadLetters;

    @Override
    public void open(OpenContext context) {
        deadLetters = new JobMetrics(getRuntimeContext().getMetricGroup()).counter("deadLetters");
    }

    @Override
    public Rejected map(Rejected rejected) {
        deadLetters.inc();
        return rejected;
    }
}
