package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.flink.api.common.JobID;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

/** Which partitions of which topics a job reads. */
class TopicsTest {
    private static final long NOON = 1_790_000_000_000L;
    private static final int SHOPPERS = 60;

    private static AdminClient admin() {
        return AdminClient.create(Map.of("bootstrap.servers", Rig.BROKER.address()));
    }

    private static JobConfiguration.Kafka shard(int index, int count, String... topics) {
        return new JobConfiguration.Kafka(
                Rig.BROKER.address(),
                "none",
                topics[0],
                "g",
                "d",
                List.of(topics).subList(1, topics.length),
                new JobConfiguration.Shard(index, count));
    }

    /** Returns the partitions of all shards, one after the other. */
    private static List<TopicPartition> read(AdminClient admin, int count, String... topics) {
        List<TopicPartition> read = new ArrayList<>();
        for (int index = 0; index < count; index++) {
            read.addAll(new KafkaTopics.Share(shard(index, count, topics)).getSubscribedTopicPartitions(admin));
        }
        return read;
    }

    private static Set<TopicPartition> partitions(String topic, int count) {
        Set<TopicPartition> all = new HashSet<>();
        for (int partition = 0; partition < count; partition++) {
            all.add(new TopicPartition(topic, partition));
        }
        return all;
    }

    @Test
    void shardsReadEachPartitionOnceAlsoAfterATopicHasGrown() throws Exception {
        try (AdminClient admin = admin()) {
            admin.createTopics(List.of(new NewTopic("grows", 5, (short) 1), new NewTopic("beside", 5, (short) 1)))
                    .all()
                    .get();
            Set<TopicPartition> all = partitions("grows", 5);
            all.addAll(partitions("beside", 5));
            Rig.await(() -> all.equals(new HashSet<>(read(admin, 1, "grows", "beside"))) ? "" : "both topics");
            assertEquals(all.size(), read(admin, 3, "grows", "beside").size());
            assertEquals(all, new HashSet<>(read(admin, 3, "grows", "beside")));
            admin.createPartitions(Map.of("grows", NewPartitions.increaseTo(8))).all().get();
            Rig.await(() -> read(admin, 1, "grows").size() == 8 ? "" : "more partitions");
            assertEquals(8, read(admin, 3, "grows").size());
            assertEquals(partitions("grows", 8), new HashSet<>(read(admin, 3, "grows")));
        }
    }

    @Test
    void twoShardsOfAJobAnswerEachSessionOnce() throws Exception {
        try (Journey journey = new Journey("shards")) {
            ObjectNode kafka = (ObjectNode) journey.document.get("kafka");
            kafka.putObject("shard").put("index", 0).put("count", 2);
            journey.start(1, null);
            kafka.putObject("shard").put("index", 1).put("count", 2);
            JobID other = Rig.CLUSTER.start(
                    JobConfiguration.read(journey.document.toString()), 1, null, journey.checkpoints);
            try {
                journey.sendRound(SHOPPERS, 0);
                journey.flush();
                journey.ledger.check();
                Map<String, Long> asked = journey.model.requests.stream()
                        .collect(Collectors.groupingBy(ModelServer.Request::session, HashMap::new, Collectors.counting()));
                assertEquals(SHOPPERS, asked.size());
                assertEquals(Set.of(1L), new HashSet<>(asked.values()), "a shard asked for a session of the other one");
            } finally {
                Rig.CLUSTER.cancel(other);
            }
        }
    }

    @Test
    void aJobReadsSeveralTopicsAndDeadLettersNameTheirs() throws Exception {
        try (AdminClient admin = admin();
                Journey journey = new Journey("first-topic")) {
            admin.createTopics(List.of(new NewTopic("second-topic", 2, (short) 1))).all().get();
            ((ObjectNode) journey.document.get("kafka")).putArray("moreTopics").add("second-topic");
            journey.start(2, null);
            journey.send("a", NOON, "a0");
            journey.sendTo("second-topic", "b", Journey.event("b", NOON, "b0"));
            journey.ledger.sent("b", NOON);
            journey.sendTo("second-topic", "p", "no JSON");
            journey.flush();
            journey.ledger.check();
            assertEquals(Set.of("a", "b"), journey.ledger.signals().keySet());
            Rig.await(() -> journey.ledger.deadLetters().isEmpty() ? "the dead letter" : "");
            assertEquals(
                    "second-topic",
                    journey.ledger.deadLetters().get(0).at("/source/topic").textValue());
            // A session's events of both topics are one session.
            journey.sendTo("second-topic", "a", Journey.event("a", NOON + 1, "a1"));
            journey.ledger.sent("a", NOON + 1);
            journey.flush();
            journey.ledger.check();
            assertTrue(journey.model.requests.stream()
                    .anyMatch(each -> each.user().contains("a0") && each.user().contains("a1")));
        }
    }
}
