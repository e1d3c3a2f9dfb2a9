package inferenceblueprints.enrichment;

import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** One job of a test with its own topics, signal, history and model server. */
final class Journey implements AutoCloseable {
    static final int PARTITIONS = 4;
    private static final long NOON = 1_790_000_000_000L;
    private static final JsonMapper MAPPER = JsonMapper.builder().build();
    private static final Map<String, Integer> USED = new ConcurrentHashMap<>();

    final String name;
    final Path folder;
    final ModelServer model = new ModelServer();
    final Ledger ledger;
    /** Between two checkpoints. */
    Duration checkpoints = Duration.ofMillis(500);
    /** The configuration as the Python library would write it; a test changes it before the start. */
    final ObjectNode document;

    private final KafkaProducer<String, byte[]> producer;
    private JobID job;

    /**
     * @param base its name; a test that is repeated in this process gets another one, since its topics exist already
     */
    Journey(String base) throws Exception {
        int uses = USED.merge(base, 1, Integer::sum);
        name = uses == 1 ? base : base + "-" + uses;
        folder = Rig.FOLDER.resolve(name);
        String history = folder.resolve("history").toUri().toString();
        ledger = new Ledger(name, history, PARTITIONS);
        document = document(name, history);
        Map<String, Object> servers = Map.of("bootstrap.servers", Rig.BROKER.address());
        try (Admin admin = Admin.create(servers)) {
            admin.createTopics(List.of(
                            new NewTopic(name, PARTITIONS, (short) 1),
                            new NewTopic(name + "-dead-letters", PARTITIONS, (short) 1)))
                    .all()
                    .get();
        }
        // One request at a time: of a topic that was just created, a broker may take the second and then refuse the first
        // for ever (https://github.com/apache/kafka/pull/23234, KAFKA-15591).
        producer = new KafkaProducer<>(
                Map.of(
                        "bootstrap.servers", Rig.BROKER.address(),
                        "linger.ms", 5,
                        "delivery.timeout.ms", 120_000,
                        "max.in.flight.requests.per.connection", 1),
                new StringSerializer(),
                new ByteArraySerializer());
    }

    private ObjectNode document(String job, String history) throws Exception {
        ObjectNode whole = MAPPER.createObjectNode().put("name", job).put("platform", "test");
        whole.putObject("kafka")
                .put("bootstrapServers", Rig.BROKER.address())
                .put("authentication", "none")
                .put("topic", job)
                .put("group", job)
                .put("deadLetterTopic", job + "-dead-letters");
        whole.putObject("session")
                .put("key", "shopper")
                .put("time", "time")
                .put("id", "id")
                .put("gapMillis", 600_000)
                .put("debounceMillis", 100)
                .put("maxEvents", 40);
        whole.putObject("prompt")
                .put("system", "Say what the shopper wants.")
                .put("maxCharacters", 8_000)
                .set("template", MAPPER.readTree(Journey.class.getResourceAsStream("/template.json")));
        whole.putObject("request").put("model", "m").put("maxTokens", 16).putNull("responseFormat").putNull("priority");
        whole.putObject("endpoint")
                .put("url", model.url())
                .put("authentication", "none")
                .put("deadlineMillis", 5_000)
                .put("attempts", 3)
                .put("maxInFlight", 400)
                .put("maxInFlightPerSubtask", 100);
        whole.putObject("signal").put("name", job).put("ttlSeconds", 3_600).putObject("store")
                .put("host", "127.0.0.1")
                .put("port", Rig.VALKEY.port())
                .put("tls", false)
                .putNull("user")
                .put("authentication", "none")
                .put("cluster", false)
                .putNull("cacheName");
        whole.putObject("history").put("uri", history);
        return whole;
    }

    Journey with(Consumer<ObjectNode> change) {
        change.accept(document);
        return this;
    }

    void start(int parallelism, String savepoint) throws Exception {
        job = Rig.CLUSTER.start(JobConfiguration.read(document.toString()), parallelism, savepoint, checkpoints);
    }

    JobID job() {
        return job;
    }

    String stop() throws Exception {
        String savepoint = Rig.CLUSTER.stop(job, folder.resolve("savepoints"));
        job = null;
        return savepoint;
    }

    /** Sends an event that belongs to its key's session. Its name is in the prompt. */
    void send(String key, long time, String id) {
        raw(key, event(key, time, id));
        ledger.sent(key, time);
    }

    /** Sends an event of every shopper of a round: {@code e} and the number of the round. */
    void sendRound(int shoppers, int round) {
        for (int shopper = 0; shopper < shoppers; shopper++) {
            send("s" + shopper, NOON + round * 1_000L, "e" + round);
        }
    }

    static String event(String key, long time, String id) {
        return "{\"shopper\":\"" + key + "\",\"time\":" + time + ",\"id\":\"" + id + "\"}";
    }

    /** Sends anything. */
    void raw(String key, String value) {
        raw(key, value.getBytes(StandardCharsets.UTF_8));
    }

    /** Sends anything to another topic. */
    void sendTo(String topic, String key, String value) {
        producer.send(new ProducerRecord<>(topic, key, value.getBytes(StandardCharsets.UTF_8)));
    }

    /** Sends any bytes. */
    void raw(String key, byte[] value) {
        producer.send(new ProducerRecord<>(name, key, value));
    }

    void flush() {
        producer.flush();
    }

    JobStatus status() throws Exception {
        return Rig.CLUSTER.status(job);
    }

    @Override
    public void close() {
        producer.close();
        try {
            if (job != null) {
                Rig.CLUSTER.cancel(job);
            }
            model.close();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
