package inferenceblueprints.enrichment;

import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.metrics.Counter;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.util.Collector;

/** Turns records into events. What is no event becomes a dead letter. */
final class EventValidation extends ProcessFunction<KafkaRecord, Event> {
    private static final long serialVersionUID = 1L;

    private final JobConfiguration.Session fields;
    private transient EventReader reader;
    private transient Counter arrived;

    EventValidation(JobConfiguration.Session fields) {
        this.fields = fields;
    }

    @Override
    public void open(OpenContext context) {
        reader = new EventReader(fields);
        arrived = new JobMetrics(getRuntimeContext().getMetricGroup()).counter("events");
    }

    @Override
    public void processElement(KafkaRecord record, Context context, Collector<Event> events) {
        arrived.inc();
        long now = System.currentTimeMillis();
        try {
            events.collect(reader.read(record, now));
        } catch (EventReader.PoisonException error) {
            boolean fits = record.value().length <= EventReader.MOST_BYTES;
            Rejected rejected = new Rejected(
                    fits ? "poison" : "too_large",
                    error.getMessage(),
                    now,
                    0,
                    null,
                    -1,
                    fits ? record.value() : null,
                    null,
                    record.partition(),
                    record.offset(),
                    record.topic());
            context.output(EnrichmentJob.REJECTED, rejected);
        }
    }
}
