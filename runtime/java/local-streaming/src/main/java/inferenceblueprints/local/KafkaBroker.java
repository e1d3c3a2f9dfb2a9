package inferenceblueprints.local;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.Time;

/**
 * One Kafka broker in KRaft mode, which listens on 127.0.0.1 only.
 *
 * <p>{@code KafkaBroker FOLDER PORT CONTROLLER_PORT TOPIC:PARTITIONS:RETENTION_HOURS...} With the folder of an earlier broker,
 * it goes on with that one's topics.
 */
public final class KafkaBroker {
    private static final String LOOPBACK = "127.0.0.1:";
    private static final long MILLIS_PER_HOUR = 3_600_000;

    private KafkaBroker() {}

    /**
     * Serves until the process ends.
     *
     * @param arguments see the class
     * @throws Exception if the broker cannot start
     */
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        String address = LOOPBACK + arguments[1];
        Properties settings = settings(folder, address, LOOPBACK + arguments[2]);
        boolean isNew = Files.notExists(folder.resolve("data").resolve("meta.properties"));
        if (isNew) {
            format(folder, settings);
        }
        KafkaRaftServer server = new KafkaRaftServer(KafkaConfig.fromProps(settings), Time.SYSTEM);
        server.startup();
        if (isNew) {
            create(address, List.of(arguments).subList(3, arguments.length));
        }
        System.out.println("listening on " + address);
        server.awaitShutdown();
    }

    private static Properties settings(Path folder, String address, String controller) {
        Properties settings = new Properties();
        settings.putAll(Map.of(
                "process.roles", "broker,controller",
                "node.id", "1",
                "controller.quorum.voters", "1@" + controller,
                "listeners", "PLAINTEXT://" + address + ",CONTROLLER://" + controller,
                "controller.listener.names", "CONTROLLER",
                "log.dirs", folder.resolve("data").toString(),
                "auto.create.topics.enable", "false",
                "group.initial.rebalance.delay.ms", "0",
                "controlled.shutdown.enable", "false"));
        // One broker holds everything once.
        settings.putAll(Map.of(
                "offsets.topic.replication.factor", "1",
                "offsets.topic.num.partitions", "1",
                "transaction.state.log.replication.factor", "1",
                "transaction.state.log.min.isr", "1",
                "transaction.state.log.num.partitions", "1",
                "log.cleaner.dedupe.buffer.size", "2097152",
                "num.network.threads", "1",
                "num.io.threads", "2"));
        return settings;
    }

    private static void format(Path folder, Properties settings) throws IOException {
        Files.createDirectories(folder);
        Path file = folder.resolve("server.properties");
        try (OutputStream out = Files.newOutputStream(file)) {
            settings.store(out, null);
        }
        String[] command = {"format", "--cluster-id", Uuid.randomUuid().toString(), "--config", file.toString()};
        if (StorageTool.execute(command, new PrintStream(OutputStream.nullOutputStream())) != 0) {
            throw new IOException("Kafka could not format " + folder);
        }
    }

    private static void create(String address, List<String> topics) throws Exception {
        List<NewTopic> wanted = new ArrayList<>();
        for (String topic : topics) {
            String[] words = topic.split(":");
            long retention = Long.parseLong(words[2]) * MILLIS_PER_HOUR;
            wanted.add(new NewTopic(words[0], Integer.parseInt(words[1]), (short) 1)
                    .configs(Map.of("retention.ms", Long.toString(retention))));
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            admin.createTopics(wanted).all().get();
        }
    }
}
