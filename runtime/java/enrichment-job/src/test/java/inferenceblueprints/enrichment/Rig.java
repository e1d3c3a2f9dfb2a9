package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.fail;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

/** The servers that all tests of this process share: one broker, one Valkey server and one Flink cluster. */
final class Rig {
    static final Path FOLDER = folder();
    static final Broker BROKER;
    static final Valkey VALKEY;
    static final Cluster CLUSTER;

    static {
        try {
            VALKEY = new Valkey(FOLDER.resolve("valkey"));
            Runtime.getRuntime().addShutdownHook(new Thread(Rig::end));
            BROKER = new Broker(FOLDER.resolve("kafka"));
            CLUSTER = new Cluster(FOLDER);
        } catch (Exception error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    private Rig() {}

    private static Path folder() {
        try {
            return Files.createTempDirectory("enrichment");
        } catch (java.io.IOException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    private static void end() {
        try {
            VALKEY.kill();
            try (Stream<Path> files = Files.walk(FOLDER)) {
                files.sorted(Comparator.reverseOrder()).forEach(each -> each.toFile().delete());
            }
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    /** A condition that a test waits for. */
    interface Condition {
        /** Returns what is missing; empty if nothing is. */
        String missing() throws Exception;
    }

    /** Waits long enough for a busy machine. */
    static void await(Condition condition) throws Exception {
        long end = System.nanoTime() + 300_000_000_000L;
        String missing = condition.missing();
        while (!missing.isEmpty()) {
            if (System.nanoTime() > end) {
                fail("still missing: " + missing);
            }
            Thread.sleep(50);
            missing = condition.missing();
        }
    }
}
