package inferenceblueprints.enrichment;

import java.util.function.Supplier;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.Histogram;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.runtime.metrics.DescriptiveStatisticsHistogram;

/**
 * Metrics of an operator. Managed Service for Apache Flink sends those of the group {@code kinesisanalytics} to CloudWatch,
 * but no histograms, so their quantiles are gauges
 * (https://docs.aws.amazon.com/managed-flink/latest/java/monitoring-metrics-custom.html).
 */
final class JobMetrics {
    private static final int SAMPLES = 1000;

    private final MetricGroup group;

    JobMetrics(MetricGroup parent) {
        group = parent.addGroup("kinesisanalytics").addGroup("Service", "enrichment");
    }

    Counter counter(String name) {
        return group.counter(name);
    }

    void gauge(String name, Supplier<Number> value) {
        group.gauge(name, (Gauge<Number>) value::get);
    }

    /** Registers the quantiles of a duration in milliseconds. */
    Histogram quantiles(String name) {
        Histogram histogram = new DescriptiveStatisticsHistogram(SAMPLES);
        group.gauge(name + "P50", (Gauge<Double>) () -> quantile(histogram, 0.5));
        group.gauge(name + "P99", (Gauge<Double>) () -> quantile(histogram, 0.99));
        return histogram;
    }

    private static double quantile(Histogram histogram, double share) {
        return histogram.getCount() == 0 ? 0 : histogram.getStatistics().getQuantile(share);
    }
}
