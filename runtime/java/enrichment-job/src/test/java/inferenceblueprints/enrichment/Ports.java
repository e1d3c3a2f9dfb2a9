package inferenceblueprints.enrichment;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;

/** Free ports of this machine. */
final class Ports {
    private Ports() {}

    static int free() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            return socket.getLocalPort();
        }
    }
}
