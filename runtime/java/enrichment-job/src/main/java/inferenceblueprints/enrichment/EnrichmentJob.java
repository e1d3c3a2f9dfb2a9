package inferenceblueprints.enrichment;

import com.amazonaws.services.kinesisanalytics.runtime.KinesisAnalyticsRuntime;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.AsyncDataStream;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.OutputTag;

/**
 * The job: events from Kafka, sessions, prompts, answers of a model, signals.
 *
 * <p>Managed Service for Apache Flink passes the address of the configuration as property {@code configuration} of the group
 * {@code job}; elsewhere it is the argument {@code --configuration}. Checkpoints are the cluster's setting.
 */
public final class EnrichmentJob {
    static final OutputTag<Rejected> REJECTED = new OutputTag<>("rejected") {
        private static final long serialVersionUID = 1L;
    };
    /** Calls end by their own deadline. This is for those that do not. */
    private static final long MORE_MILLIS = 5_000;

    private static final int MOST_SUBTASKS = 1024;

    private EnrichmentJob() {}

    /**
     * Starts the job.
     *
     * @param arguments {@code --configuration} and the path or address of the document; none in Managed Service for Apache Flink
     * @throws Exception if there is no valid configuration, or the job cannot be started
     */
    public static void main(String[] arguments) throws Exception {
        JobConfiguration configuration = JobConfiguration.read(document(arguments));
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
        build(environment, configuration);
        environment.execute(configuration.platform() + "-" + configuration.name());
    }

    private static String document(String[] arguments) throws IOException {
        String address;
        if (arguments.length == 2 && arguments[0].equals("--configuration")) {
            address = arguments[1];
        } else {
            Properties properties = KinesisAnalyticsRuntime.getApplicationProperties().getOrDefault("job", new Properties());
            address = properties.getProperty("configuration");
        }
        if (address == null) {
            throw new IllegalArgumentException(
                    "configuration: missing; set the argument --configuration FILE, or the property configuration of the group job");
        }
        Path path = new Path(address);
        try (InputStream file = path.getFileSystem().open(path)) {
            return new String(file.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    private static long longestCall(JobConfiguration.Endpoint endpoint) {
        long patience = endpoint.patience() == 0 ? 0 : endpoint.patience() + EventReader.MOST_AHEAD_MILLIS;
        return patience + 2 * endpoint.deadlineMillis() + MORE_MILLIS;
    }

    /** Adds the job's operators. Each has an identifier, by which a later version finds its state in a snapshot. */
    static void build(StreamExecutionEnvironment environment, JobConfiguration configuration) {
        Configuration settings = new Configuration();
        // Types without a serializer that can evolve are an error.
        settings.set(PipelineOptions.GENERIC_TYPES, false);
        environment.configure(settings);
        // It cannot change after the first start. Managed Flink allows 256 subtasks, which then have four groups of keys each.
        environment.setMaxParallelism(MOST_SUBTASKS);
        // No watermarks: unordered results would wait for each other at every one, behind the slowest call.
        SingleOutputStreamOperator<Event> events = environment
                .fromSource(KafkaTopics.events(configuration.kafka()), WatermarkStrategy.noWatermarks(), "events")
                .uid("events")
                .process(new EventValidation(configuration.session()))
                .name("validation")
                .uid("validation");
        SingleOutputStreamOperator<SessionPrompt> versions = events.keyBy(Event::key)
                .process(new Sessions(configuration))
                .name("sessions")
                .uid("sessions");
        // Same parallelism and no exchange: all versions of a session reach the same subtask.
        SingleOutputStreamOperator<Result> results = AsyncDataStream.unorderedWaitWithRetry(
                        versions,
                        new Asking(configuration),
                        longestCall(configuration.endpoint()),
                        TimeUnit.MILLISECONDS,
                        // Sessions begin no call above the maximum. Results that wait to be passed on are more.
                        2 * configuration.endpoint().maxInFlightPerSubtask(),
                        new Retries())
                .name("model")
                .uid("model");
        SingleOutputStreamOperator<Result> answers =
                results.process(new Sorting(configuration)).name("sorting").uid("sorting");
        answers.sinkTo(new SignalSink(configuration)).name("signals").uid("signals");
        answers.sinkTo(History.sink(configuration)).name("history").uid("history");
        DataStream<Rejected> rejected = events.getSideOutput(REJECTED)
                .union(versions.getSideOutput(REJECTED), answers.getSideOutput(REJECTED));
        rejected.map(new Counting())
                .name("dead letters")
                .uid("dead-letters")
                .sinkTo(KafkaTopics.deadLetters(configuration))
                .name("dead-letter topic")
                .uid("dead-letter-topic");
    }
}
