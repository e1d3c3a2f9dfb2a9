package inferenceblueprints.enrichment;

import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.time.ZoneOffset;
import org.apache.flink.api.common.serialization.Encoder;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.functions.sink.filesystem.OutputFileConfig;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.DateTimeBucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;

/**
 * Keeps all answers as lines of JSON, in folders by hour. A file ends at each checkpoint and is visible after it, so each
 * answer is in it exactly once.
 */
final class History {
    private static final JsonMapper MAPPER = JsonMapper.builder().build();
    private static final String FOLDER = "'date='yyyy-MM-dd/'hour='HH";

    private History() {}

    static FileSink<Result> sink(JobConfiguration configuration) {
        return FileSink.<Result>forRowFormat(new Path(configuration.history().uri()), new Line(configuration))
                .withBucketAssigner(new DateTimeBucketAssigner<>(folder(configuration.history().uri()), ZoneOffset.UTC))
                .withRollingPolicy(OnCheckpointRollingPolicy.build())
                .withOutputFileConfig(OutputFileConfig.builder().withPartSuffix(".jsonl").build())
                .build();
    }

    /**
     * Returns the pattern of folders. Former releases wrote to {@code s3://}. Their snapshots have folders of this pattern,
     * and Flink merges folders of a name only if their addresses are equal ({@code FileWriterBucket.merge}). A slash at the
     * end makes another name of the same folder.
     */
    private static String folder(String address) {
        return address.startsWith("s3a:") ? FOLDER + "/" : FOLDER;
    }

    private static final class Line implements Encoder<Result> {
        private static final long serialVersionUID = 1L;

        private final String job;
        private final String signal;
        private final String model;
        private final ModelCalls calls;

        Line(JobConfiguration configuration) {
            job = configuration.name();
            signal = configuration.signal().name();
            model = configuration.request().model();
            calls = new ModelCalls(configuration);
        }

        @Override
        public void encode(Result result, OutputStream file) throws IOException {
            ObjectNode line = MAPPER.createObjectNode()
                    .put("job", job)
                    .put("signal", signal)
                    .put("session", result.prompt().key())
                    .put("version", result.prompt().version())
                    .put("value", result.text())
                    .put("model", model)
                    .put("promptHash", calls.promptHash(result.prompt()))
                    .put("time", result.time())
                    .put("attempts", result.attempts())
                    .put("callMillis", result.callMillis())
                    .put("promptTokens", result.promptTokens())
                    .put("cachedTokens", result.cachedTokens())
                    .put("answerTokens", result.answerTokens());
            file.write((line + "\n").getBytes(StandardCharsets.UTF_8));
        }
    }
}
