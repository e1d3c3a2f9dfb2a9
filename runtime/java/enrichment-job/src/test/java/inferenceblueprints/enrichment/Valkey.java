package inferenceblueprints.enrichment;

import java.io.IOException;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/** A real Valkey server on loopback. The variable VALKEY_SERVER names the program. */
final class Valkey {
    private final Path folder;
    private final int port = Ports.free();
    private Process process;

    Valkey(Path folder) throws Exception {
        this.folder = Files.createDirectories(folder);
        start();
    }

    int port() {
        return port;
    }

    /** Starts it with what it had when it was stopped. */
    void start() throws Exception {
        String program = System.getenv("VALKEY_SERVER");
        if (program == null) {
            throw new IllegalStateException("VALKEY_SERVER is not set: run `make test-java`");
        }
        process = new ProcessBuilder(
                        program, "--port", "" + port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
                        "--appendfsync", "always", "--dir", folder.toString())
                .redirectErrorStream(true)
                .redirectOutput(folder.resolve("valkey.log").toFile())
                .start();
        for (int left = 500; ; left--) {
            try {
                new Socket("127.0.0.1", port).close();
                return;
            } catch (IOException error) {
                if (left == 0 || !process.isAlive()) {
                    throw error;
                }
                Thread.sleep(20);
            }
        }
    }

    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor(10, TimeUnit.SECONDS);
    }
}
