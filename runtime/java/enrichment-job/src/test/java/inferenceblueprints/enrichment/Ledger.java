package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import io.lettuce.core.RedisClient;
import io.lettuce.core.api.StatefulRedisConnection;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Counts what a job has done: reads the topic, the files and the store, without any of the job's classes.
 *
 * <p>It knows the events that were sent. A version is the time of a session's newest event in milliseconds × 1,000 plus the
 * number of its events, so each prefix of a session's events has one version.
 */
final class Ledger {
    private static final JsonMapper MAPPER = JsonMapper.builder().build();

    private final String job;
    private final Path history;
    private final int partitions;
    /** Versions of each key in order; the last one is that of all events. */
    final Map<String, List<Long>> versions = new TreeMap<>();

    /** Versions that had ended at a former check, so no newer one superseded them. */
    private final Set<String> settled = new HashSet<>();

    private final Map<String, Long> newest = new HashMap<>();
    private final Map<String, Integer> counts = new HashMap<>();

    Ledger(String job, String history, int partitions) {
        this.job = job;
        this.history = Path.of(URI.create(history));
        this.partitions = partitions;
    }

    /** The next event of a key begins a new session. */
    void over(String key) {
        newest.remove(key);
        counts.remove(key);
    }

    /** Notes an event that belongs to its key's open session. */
    void sent(String key, long time) {
        newest.merge(key, time, Math::max);
        int count = counts.merge(key, 1, Integer::sum);
        versions.computeIfAbsent(key, each -> new ArrayList<>()).add(newest.get(key) * 1000 + count);
    }

    /** Lines of the history that are visible. */
    List<JsonNode> lines() throws IOException {
        List<JsonNode> lines = new ArrayList<>();
        if (!Files.exists(history)) {
            return lines;
        }
        try (Stream<Path> files = Files.walk(history)) {
            for (Path file : files.filter(each -> each.getFileName().toString().matches("part-.*\\.jsonl")).toList()) {
                for (String line : Files.readAllLines(file)) {
                    lines.add(MAPPER.readTree(line));
                }
            }
        } catch (java.io.UncheckedIOException | java.nio.file.NoSuchFileException moved) {
            return lines();
        }
        return lines;
    }

    List<JsonNode> deadLetters() throws IOException {
        List<JsonNode> letters = new ArrayList<>();
        Map<String, Object> settings = Map.of("bootstrap.servers", Rig.BROKER.address());
        List<TopicPartition> all = new ArrayList<>();
        for (int partition = 0; partition < partitions; partition++) {
            all.add(new TopicPartition(job + "-dead-letters", partition));
        }
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            consumer.seekToBeginning(all);
            while (all.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    letters.add(MAPPER.readTree(record.value()));
                }
            }
        }
        return letters;
    }

    /** Visible signals by key. */
    Map<String, JsonNode> signals() throws IOException {
        Map<String, JsonNode> found = new TreeMap<>();
        RedisClient client = RedisClient.create("redis://127.0.0.1:" + Rig.VALKEY.port());
        try (StatefulRedisConnection<String, String> connection = client.connect()) {
            for (String stored : connection.sync().keys("signal:" + job + ":*")) {
                // One command: a write changes both.
                var fields = connection.sync().hmget(stored, "d", "v");
                JsonNode record = MAPPER.readTree(fields.get(0).getValue());
                assertEquals(fields.get(1).getValue(), record.get("version").asText());
                found.put(stored.substring(("signal:" + job + ":").length()), record);
            }
        } finally {
            client.shutdown(Duration.ZERO, Duration.ofSeconds(2));
        }
        return found;
    }

    /** Returns the versions that nothing superseded and that are neither in the history nor among the dead letters. */
    String missing() throws IOException {
        Set<String> missing = last();
        missing.addAll(settled);
        missing.removeAll(ended(lines()));
        missing.removeAll(ended(deadLetters()));
        return String.join(" ", missing);
    }

    private Set<String> last() {
        return versions.entrySet().stream()
                .map(each -> each.getKey() + "@" + each.getValue().get(each.getValue().size() - 1))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private static Set<String> ended(List<JsonNode> records) {
        return records.stream()
                .filter(each -> each.path("version").isNumber())
                .map(each -> each.get("session").asText() + "@" + each.get("version").asLong())
                .collect(Collectors.toCollection(HashSet::new));
    }

    /**
     * Checks that nothing is lost, nothing is there twice, and the store holds the newest answer of each key.
     *
     * <p>A version may be superseded while newer events come, so only the last one of each key must be there. It stays, also
     * when it is no longer the last: all later checks look for it.
     */
    void check() throws Exception {
        Rig.await(this::missing);
        settled.addAll(last());
        List<JsonNode> lines = lines();
        assertEquals(lines.size(), ended(lines).size(), "a version is in the history once");
        Map<String, Long> newestAnswers = new TreeMap<>();
        for (JsonNode line : lines) {
            String key = line.get("session").asText();
            long version = line.get("version").asLong();
            assertTrue(versions.getOrDefault(key, List.of()).contains(version), key + " has no version " + version);
            newestAnswers.merge(key, version, Math::max);
        }
        Map<String, JsonNode> signals = signals();
        assertEquals(newestAnswers.keySet(), signals.keySet(), "keys with a signal");
        signals.forEach((key, signal) -> assertEquals(
                newestAnswers.get(key), signal.get("version").asLong(), key + ": the store holds the newest answer"));
        for (JsonNode letter : deadLetters()) {
            if (letter.path("version").isNumber() && letter.path("request").isObject()) {
                assertTrue(versions.get(letter.get("session").asText()).contains(letter.get("version").asLong()));
            }
        }
    }
}
