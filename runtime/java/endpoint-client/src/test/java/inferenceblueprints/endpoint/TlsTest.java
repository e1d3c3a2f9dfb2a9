package inferenceblueprints.endpoint;

import static inferenceblueprints.endpoint.Calls.QUESTION;
import static inferenceblueprints.endpoint.Calls.fails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsParameters;
import com.sun.net.httpserver.HttpsServer;
import inferenceblueprints.endpoint.EndpointException.Reason;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLServerSocket;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Endpoints with TLS: the JDK's own HTTPS server, with certificates that a client must and must not accept. */
class TlsTest {
    @TempDir
    static Path directory;

    private static Certificates certificates;

    @BeforeAll
    static void make() throws Exception {
        certificates = Certificates.make(directory);
    }

    /** A server that shows a certificate and counts requests. */
    private static final class Server implements AutoCloseable {
        final AtomicInteger requests = new AtomicInteger();
        private final ExecutorService threads = Executors.newCachedThreadPool();
        private final HttpsServer server;

        Server(String certificate, boolean asksForClients) throws Exception {
            server = HttpsServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
            server.setExecutor(threads);
            server.setHttpsConfigurator(new HttpsConfigurator(certificates.context(certificate)) {
                @Override
                public void configure(HttpsParameters parameters) {
                    SSLParameters tls = getSSLContext().getDefaultSSLParameters();
                    tls.setNeedClientAuth(asksForClients);
                    parameters.setSSLParameters(tls);
                }
            });
            server.createContext("/", exchange -> {
                requests.incrementAndGet();
                exchange.getRequestBody().readAllBytes();
                byte[] answer = HostileServer.chat("blue").getBytes(StandardCharsets.UTF_8);
                exchange.getResponseHeaders().set("Content-Type", "application/json");
                exchange.sendResponseHeaders(200, answer.length);
                exchange.getResponseBody().write(answer);
                exchange.close();
            });
            server.start();
        }

        EndpointClient client(SSLContext tls) {
            EndpointClient.Builder builder = EndpointClient.builder(URI.create("https://127.0.0.1:" + server.getAddress().getPort()))
                    .model("m")
                    .deadline(Duration.ofSeconds(20))
                    .withoutHedging();
            return (tls == null ? builder : builder.tls(tls)).build();
        }

        @Override
        public void close() {
            server.stop(0);
            threads.shutdownNow();
        }
    }

    @Test
    void anAuthorityOfTheContextIsTrusted() throws Exception {
        try (Server server = new Server("good", false);
                EndpointClient client = server.client(certificates.context(null))) {
            assertEquals("blue", client.send(QUESTION).text());
            assertEquals("blue", client.send(QUESTION).text());
        }
    }

    @Test
    void withHttp2TheServerThatSpeaksHttp1IsStillAnswered() throws Exception {
        try (Server server = new Server("good", false);
                EndpointClient client = EndpointClient.builder(URI.create("https://127.0.0.1:" + server.server.getAddress().getPort()))
                        .model("m")
                        .tls(certificates.context(null))
                        .http2()
                        .deadline(Duration.ofSeconds(20))
                        .build()) {
            assertEquals("blue", client.send(QUESTION).text());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"other", "expired"})
    void aCertificateThatIsNotValidIsRefusedAtOnce(String certificate) throws Exception {
        try (Server server = new Server(certificate, false);
                EndpointClient client = server.client(certificates.context(null))) {
            EndpointException failure = fails(Reason.CONNECTION, () -> client.send(QUESTION));
            assertTrue(failure.getMessage().contains("TLS"), failure.getMessage());
            assertEquals(0, server.requests.get(), "nothing was sent");
        }
    }

    @Test
    void anUnknownAuthorityIsRefused() throws Exception {
        try (Server server = new Server("good", false);
                EndpointClient client = server.client(null)) {
            fails(Reason.CONNECTION, () -> client.send(QUESTION));
            assertEquals(0, server.requests.get());
        }
    }

    @Test
    void aServerMayAskForACertificateOfTheClient() throws Exception {
        try (Server server = new Server("good", true);
                EndpointClient known = server.client(certificates.context("client"));
                EndpointClient unknown = server.client(certificates.context(null))) {
            assertEquals("blue", known.send(QUESTION).text());
            fails(Reason.CONNECTION, () -> unknown.send(QUESTION));
            assertEquals(1, server.requests.get());
        }
    }

    /** Speaks HTTP/2, which the client chose while it connected (ALPN), and answers each request. */
    private static void speakHttp2(HostileServer.Request preface) throws Exception {
        preface.in.readNBytes("SM\r\n\r\n".length());
        ConnectionsTest.frame(preface, ConnectionsTest.SETTINGS, 0, 0, new byte[0]);
        for (byte[] head = preface.in.readNBytes(9); head.length == 9; head = preface.in.readNBytes(9)) {
            int length = (head[0] & 255) << 16 | (head[1] & 255) << 8 | head[2] & 255;
            int stream = (head[5] & 127) << 24 | (head[6] & 255) << 16 | (head[7] & 255) << 8 | head[8] & 255;
            preface.in.readNBytes(length);
            if (head[3] == ConnectionsTest.SETTINGS && (head[4] & 1) == 0) {
                ConnectionsTest.frame(preface, ConnectionsTest.SETTINGS, 1, 0, new byte[0]);
            } else if (head[3] == ConnectionsTest.HEADERS) {
                ConnectionsTest.answerFrame(preface, stream);
            }
        }
    }

    @Test
    void http2OverTlsSharesAConnection() throws Exception {
        SSLServerSocket socket = (SSLServerSocket) certificates.context("good")
                .getServerSocketFactory()
                .createServerSocket(0, 64, InetAddress.getByName("127.0.0.1"));
        SSLParameters tls = socket.getSSLParameters();
        tls.setApplicationProtocols(new String[] {"h2"});
        socket.setSSLParameters(tls);
        try (HostileServer server = new HostileServer(TlsTest::speakHttp2, socket);
                EndpointClient client = EndpointClient.builder(URI.create("https://127.0.0.1:" + server.port()))
                        .model("m")
                        .tls(certificates.context(null))
                        .http2()
                        .deadline(Duration.ofSeconds(20))
                        .withoutHedging()
                        .build()) {
            for (int call = 0; call < 5; call++) {
                assertEquals("blue", client.send(QUESTION).text());
            }
            assertEquals(1, server.accepted.get());
        }
    }
}
