package inferenceblueprints.enrichment;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonDeserializer;
import com.fasterxml.jackson.databind.annotation.JsonDeserialize;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.io.Serializable;
import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * What one job does. The Python library writes it (contracts/inference_contracts/streaming_job.py); both are held to the same
 * example.
 */
record JobConfiguration(
        String name,
        String platform,
        Kafka kafka,
        Session session,
        Prompt prompt,
        Request request,
        Endpoint endpoint,
        Signal signal,
        History history)
        implements Serializable {
    /** Value of the priority header that batch uses, in contracts/inference_contracts/request_headers.json. */
    static final String BATCH = "-1";

    private static final Set<String> OPTIONAL = Set.of(
            "kafka.moreTopics",
            "kafka.shard",
            "endpoint.maxAgeMillis",
            "endpoint.door",
            "session.id",
            "prompt.system",
            "request.responseFormat",
            "request.priority",
            "signal.store.user",
            "signal.store.cacheName",
            "signal.store.region");
    private static final JsonMapper MAPPER = JsonMapper.builder()
            .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
            .build();

    /**
     * Topics and how to reach them; authentication is {@code iam} or {@code none}. Without {@code shard}, the job reads all
     * partitions.
     */
    record Kafka(
            String bootstrapServers,
            String authentication,
            String topic,
            String group,
            String deadLetterTopic,
            List<String> moreTopics,
            Shard shard)
            implements Serializable {
        /** Returns the topics of events. */
        List<String> topics() {
            List<String> topics = new ArrayList<>(List.of(topic));
            if (moreTopics != null) {
                topics.addAll(moreTopics);
            }
            return topics;
        }
    }

    /** One of {@code count} applications that divide the partitions among themselves. {@code index} counts from 0. */
    record Shard(int index, int count) implements Serializable {}

    /** Fields of an event, and when sessions begin and end. Without {@code id}, repeated events are not recognised. */
    record Session(String key, String time, String id, long gapMillis, long debounceMillis, int maxEvents)
            implements Serializable {}

    /** What the model reads: a system message or null, and the JSON text of a checked template for the events. */
    record Prompt(
            String system, @JsonDeserialize(using = JsonText.class) String template, int maxCharacters)
            implements Serializable {}

    /** The rest of a request. {@code responseFormat} is JSON text, or null. */
    record Request(
            String model, int maxTokens, @JsonDeserialize(using = JsonText.class) String responseFormat, String priority)
            implements Serializable {}

    /**
     * The endpoint. The deadline is for one call with all its attempts. While the model answers nobody, versions wait until
     * their newest event is as old as {@code maxAgeMillis}; null for a dead letter at the deadline. With {@code door}, the
     * authentication is {@code bearer}, else {@code none}.
     */
    record Endpoint(
            String url,
            String authentication,
            long deadlineMillis,
            int attempts,
            int maxInFlight,
            int maxInFlightPerSubtask,
            Long maxAgeMillis,
            Door door)
            implements Serializable {
        /** Returns for how long a version may wait for a model that is away; 0 if it may not. */
        long patience() {
            return maxAgeMillis == null ? 0 : maxAgeMillis;
        }
    }

    /**
     * The front door, if the endpoint is one: the name that it knows the job's model by, the team that pays, and the ARN of the
     * secret with that team's key.
     */
    record Door(String model, String team, String secret) implements Serializable {}

    /** Where answers become visible. */
    record Signal(String name, long ttlSeconds, Store store) implements Serializable {}

    /** The signal store; authentication is {@code iam} with TLS and cluster mode, or {@code none} without them. */
    record Store(
            String host,
            int port,
            boolean tls,
            String user,
            String authentication,
            boolean cluster,
            String cacheName,
            String region)
            implements Serializable {}

    /** Where all answers are kept. */
    record History(String uri) implements Serializable {}

    /** Keeps a part of the document as text. */
    static final class JsonText extends JsonDeserializer<String> {
        @Override
        public String deserialize(JsonParser parser, DeserializationContext context) throws IOException {
            return parser.readValueAsTree().toString();
        }
    }

    static JobConfiguration read(String json) {
        try {
            JobConfiguration configuration = MAPPER.readValue(json, JobConfiguration.class);
            List<String> faults = configuration.faults();
            if (!faults.isEmpty()) {
                throw new IllegalArgumentException("configuration: " + String.join("; ", faults));
            }
            return configuration;
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException("configuration: " + error.getMessage(), error);
        }
    }

    private List<String> faults() {
        List<String> faults = new ArrayList<>();
        missing(faults, "", this);
        if (!faults.isEmpty()) {
            return faults;
        }
        choice(faults, "kafka.authentication", kafka.authentication, "iam", "none");
        choice(faults, "endpoint.authentication", endpoint.authentication, endpoint.door == null ? "none" : "bearer");
        choice(faults, "signal.store.authentication", signal.store.authentication, "iam", "none");
        if (request.priority != null && !request.priority.equals(BATCH)) {
            faults.add("request.priority: must be null or " + BATCH + "; got " + request.priority);
        }
        positive(faults, "session.gapMillis", session.gapMillis);
        positive(faults, "session.maxEvents", session.maxEvents);
        positive(faults, "prompt.maxCharacters", prompt.maxCharacters);
        positive(faults, "request.maxTokens", request.maxTokens);
        positive(faults, "endpoint.deadlineMillis", endpoint.deadlineMillis);
        positive(faults, "endpoint.attempts", endpoint.attempts);
        positive(faults, "endpoint.maxInFlightPerSubtask", endpoint.maxInFlightPerSubtask);
        if (endpoint.maxAgeMillis != null) {
            positive(faults, "endpoint.maxAgeMillis", endpoint.maxAgeMillis);
        }
        if (kafka.shard != null && (kafka.shard.index < 0 || kafka.shard.index >= kafka.shard.count)) {
            faults.add("kafka.shard: index must be 0 to below count; got " + kafka.shard.index + " of " + kafka.shard.count);
        }
        positive(faults, "signal.ttlSeconds", signal.ttlSeconds);
        boolean iam = signal.store.authentication.equals("iam");
        if (iam != signal.store.tls || iam != signal.store.cluster) {
            faults.add("signal.store: iam needs tls and cluster, and none is without them");
        }
        if (iam && (signal.store.user == null || signal.store.cacheName == null)) {
            faults.add("signal.store: iam needs user and cacheName");
        }
        if (session.debounceMillis < 0 || session.debounceMillis >= session.gapMillis) {
            faults.add("session.debounceMillis: must be 0 to below gapMillis; got " + session.debounceMillis);
        }
        if (endpoint.maxInFlight < endpoint.maxInFlightPerSubtask) {
            faults.add("endpoint.maxInFlight: must be at least maxInFlightPerSubtask; got " + endpoint.maxInFlight);
        }
        return faults;
    }

    /** Adds the fields of a record and its parts that are missing. */
    private static void missing(List<String> faults, String path, Record part) {
        for (RecordComponent each : part.getClass().getRecordComponents()) {
            String name = path + each.getName();
            try {
                Object value = each.getAccessor().invoke(part);
                if (value instanceof Record record) {
                    missing(faults, name + ".", record);
                } else if (value == null && !OPTIONAL.contains(name)) {
                    faults.add(name + ": missing");
                }
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    private static void choice(List<String> faults, String name, String value, String... allowed) {
        if (!List.of(allowed).contains(value)) {
            faults.add(name + ": must be " + String.join(" or ", allowed) + "; got " + value);
        }
    }

    private static void positive(List<String> faults, String name, long value) {
        if (value < 1) {
            faults.add(name + ": must be above 0; got " + value);
        }
    }
}
