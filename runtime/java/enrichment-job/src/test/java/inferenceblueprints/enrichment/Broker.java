package inferenceblueprints.enrichment;

import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;

/** A real Kafka broker and controller in this process, on loopback. */
final class Broker {
    private final Path settings;
    private final int port = Ports.free();
    private KafkaRaftServer server;

    Broker(Path folder) throws Exception {
        int controller = Ports.free();
        Files.createDirectories(folder);
        settings = folder.resolve("server.properties");
        Files.write(
                settings,
                List.of(
                        "process.roles=broker,controller",
                        "node.id=1",
                        "controller.quorum.voters=1@127.0.0.1:" + controller,
                        "listeners=PLAINTEXT://127.0.0.1:" + port + ",CONTROLLER://127.0.0.1:" + controller,
                        "controller.listener.names=CONTROLLER",
                        "log.dirs=" + folder.resolve("data"),
                        "offsets.topic.replication.factor=1",
                        "offsets.topic.num.partitions=1",
                        "group.initial.rebalance.delay.ms=0",
                        "log.cleaner.dedupe.buffer.size=2097152",
                        "num.network.threads=1",
                        "num.io.threads=2",
                        "controlled.shutdown.enable=false"));
        PrintStream nowhere = new PrintStream(OutputStream.nullOutputStream());
        String[] format = {"format", "-t", Uuid.randomUuid().toString(), "-c", settings.toString()};
        if (StorageTool.execute(format, nowhere) != 0) {
            throw new IllegalStateException("the broker's folder cannot be formatted");
        }
        start();
    }

    String address() {
        return "127.0.0.1:" + port;
    }

    void start() throws Exception {
        server = new KafkaRaftServer(KafkaConfig.fromProps(Utils.loadProps(settings.toString())), Time.SYSTEM);
        server.startup();
    }

    void stop() {
        server.shutdown();
        server.awaitShutdown();
    }
}
