package inferenceblueprints.endpoint;

import static inferenceblueprints.endpoint.Calls.QUESTION;
import static inferenceblueprints.endpoint.Calls.client;
import static inferenceblueprints.endpoint.Calls.nothingInFlight;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** What happens to connections: HTTP/2's GOAWAY, a changed address, and very many calls. */
class ConnectionsTest {
    static final int SETTINGS = 4;
    static final int HEADERS = 1;
    private static final int DATA = 0;
    private static final int GOAWAY = 7;

    static void frame(HostileServer.Request request, int type, int flags, int stream, byte[] content)
            throws IOException {
        int length = content.length;
        request.out.write(new byte[] {
            (byte) (length >> 16), (byte) (length >> 8), (byte) length, (byte) type, (byte) flags,
            (byte) (stream >> 24), (byte) (stream >> 16), (byte) (stream >> 8), (byte) stream
        });
        request.out.write(content);
        request.out.flush();
    }

    static void answerFrame(HostileServer.Request request, int stream) throws IOException {
        frame(request, HEADERS, 4, stream, new byte[] {(byte) 0x88}); // :status 200
        frame(request, DATA, 1, stream, HostileServer.chat("blue").getBytes(StandardCharsets.UTF_8));
    }

    /** Answers a stream, and says in the middle of it that the connection takes no more requests. */
    private static void answerAndGoAway(HostileServer.Request request, int stream) throws IOException {
        byte[] answer = HostileServer.chat("blue").getBytes(StandardCharsets.UTF_8);
        int half = answer.length / 2;
        frame(request, HEADERS, 4, stream, new byte[] {(byte) 0x88});
        frame(request, DATA, 0, stream, Arrays.copyOf(answer, half));
        frame(request, GOAWAY, 0, 0, new byte[] {0, 0, 0, (byte) stream, 0, 0, 0, 0});
        frame(request, DATA, 1, stream, Arrays.copyOfRange(answer, half, answer.length));
    }

    /** Speaks HTTP/2 after an upgrade. On the first connection, the second request gets what is given. */
    private static void secondRequest(HostileServer.Request request, int connection, Second second) throws Exception {
        request.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
        frame(request, SETTINGS, 0, 0, new byte[0]);
        request.in.readNBytes(24);
        answerFrame(request, 1);
        while (true) {
            byte[] head = request.in.readNBytes(9);
            if (head.length < 9) {
                throw new java.io.EOFException();
            }
            int length = (head[0] & 255) << 16 | (head[1] & 255) << 8 | head[2] & 255;
            int stream = (head[5] & 127) << 24 | (head[6] & 255) << 16 | (head[7] & 255) << 8 | head[8] & 255;
            request.in.readNBytes(length);
            if (head[3] == SETTINGS && (head[4] & 1) == 0) {
                frame(request, SETTINGS, 1, 0, new byte[0]);
            } else if (head[3] == HEADERS && connection == 1) {
                second.gets(request, stream);
            } else if (head[3] == HEADERS) {
                answerFrame(request, stream);
            }
        }
    }

    @Test
    void aRequestThatAGoAwayLeavesUnansweredIsSentAgain() throws Exception {
        AtomicInteger connections = new AtomicInteger();
        AtomicInteger unanswered = new AtomicInteger();
        try (HostileServer server =
                        new HostileServer(request -> secondRequest(request, connections.incrementAndGet(), (each, stream) -> {
                            unanswered.incrementAndGet();
                            frame(each, GOAWAY, 0, 0, new byte[] {0, 0, 0, 1, 0, 0, 0, 0});
                        }));
                EndpointClient client = client(server, EndpointClient.Builder::http2)) {
            assertEquals("blue", client.send(QUESTION).text());
            assertEquals("blue", client.send(QUESTION).text());
            assertEquals(1, unanswered.get(), "the second request met the GOAWAY");
            assertEquals(2, connections.get());
            assertEquals("blue", client.send(QUESTION).text());
        }
    }

    /** Newer JDKs read the rest of the answer. Older ones break the connection, and the request is sent again. */
    @Test
    void aGoAwayInTheMiddleOfAnAnswerCostsAtMostARepetition() throws Exception {
        AtomicInteger connections = new AtomicInteger();
        AtomicInteger halves = new AtomicInteger();
        try (HostileServer server =
                        new HostileServer(request -> secondRequest(request, connections.incrementAndGet(), (each, stream) -> {
                            halves.incrementAndGet();
                            answerAndGoAway(each, stream);
                        }));
                EndpointClient client = client(server, EndpointClient.Builder::http2)) {
            for (int call = 0; call < 4; call++) {
                assertEquals("blue", client.send(QUESTION).text());
            }
            assertEquals(1, halves.get(), "the connection that ended got no other request");
            assertEquals(2, connections.get());
        }
    }

    /** A stream that has begun is never repeated: its caller has the parts, and its end or a clear failure. */
    @Test
    void aGoAwayInTheMiddleOfAStreamRepeatsNoPart() throws Exception {
        AtomicInteger connections = new AtomicInteger();
        try (HostileServer server =
                        new HostileServer(request -> secondRequest(request, connections.incrementAndGet(), (each, stream) -> {
                            frame(each, HEADERS, 4, stream, eventStream());
                            frame(each, DATA, 0, stream, event("{\"choices\":[{\"delta\":{\"content\":\"bl\"}}]}"));
                            frame(each, GOAWAY, 0, 0, new byte[] {0, 0, 0, (byte) stream, 0, 0, 0, 0});
                            frame(each, DATA, 0, stream, event("{\"choices\":[{\"delta\":{\"content\":\"ue\"}}]}"));
                            frame(each, DATA, 1, stream, event("[DONE]"));
                        }));
                EndpointClient client = client(server, EndpointClient.Builder::http2)) {
            assertEquals("blue", client.send(QUESTION).text());
            StringBuilder parts = new StringBuilder();
            try (AnswerStream stream = client.stream(QUESTION)) {
                stream.forEach(parts::append);
                assertEquals("blue", parts.toString());
            } catch (EndpointException failure) {
                assertEquals(EndpointException.Reason.CONNECTION, failure.reason(), failure.getMessage());
                assertTrue("blue".startsWith(parts.toString()), parts.toString());
            }
            assertEquals("blue", client.send(QUESTION).text());
            assertEquals(2, connections.get());
        }
    }

    /** Status 200 and {@code content-type}, name 31 of HPACK's static table (RFC 7541, appendix A). */
    private static byte[] eventStream() {
        byte[] type = "text/event-stream".getBytes(StandardCharsets.US_ASCII);
        byte[] header = Arrays.copyOf(new byte[] {(byte) 0x88, 0x5F, (byte) type.length}, 3 + type.length);
        System.arraycopy(type, 0, header, 3, type.length);
        return header;
    }

    private static byte[] event(String data) {
        return ("data: " + data + "\n\n").getBytes(StandardCharsets.UTF_8);
    }

    /** What the second request of the first connection gets. */
    private interface Second {
        void gets(HostileServer.Request request, int stream) throws IOException;
    }

    @Test
    void aChangedAddressIsFollowed() throws Exception {
        Path hosts = Path.of(System.getProperty("jdk.net.hosts.file"));
        Files.writeString(hosts, "127.0.0.1 moving.example\n");
        try (HostileServer before = new HostileServer(request -> request.answer("before"));
                HostileServer after = new HostileServer(
                        request -> request.answer("after"), InetAddress.getByName("127.0.0.2"), before.port());
                EndpointClient client = EndpointClient.builder(URI.create("http://moving.example:" + before.port()))
                        .model("m")
                        .build()) {
            assertEquals("before", client.send(QUESTION).text());
            assertEquals(0, after.requests.get());
            Files.writeString(hosts, "127.0.0.2 moving.example\n");
            String answer = "before";
            for (int wait = 0; wait < 200 && answer.equals("before"); wait++) {
                Thread.sleep(50);
                answer = client.send(QUESTION).text(); // a busy connection to the old address exists
            }
            assertEquals("after", answer);
        }
    }

    @Test
    void aHundredThousandCallsLeaveNothingBehind() throws Exception {
        int calls = Integer.getInteger("calls", 100_000);
        int atOnce = 32;
        try (HostileServer server = new HostileServer(ConnectionsTest::mixed);
                EndpointClient client = client(server, builder -> builder
                        .maxInFlight(atOnce)
                        .circuit(100, 1_000_000, Duration.ofSeconds(1), Duration.ofSeconds(1)))) {
            run(client, 2_000, atOnce);
            int threads = Thread.activeCount() - server.open.get();
            long memory = usedMemory();
            long buffers = directBuffers();
            AtomicInteger answered = run(client, calls, atOnce);
            assertTrue(answered.get() > calls * 9 / 10, answered + " of " + calls + " calls were answered");
            nothingInFlight(client);
            assertTrue(server.open.get() <= 2 * atOnce, server.open + " connections are open");
            int more = Thread.activeCount() - server.open.get() - threads;
            assertTrue(more <= atOnce, more + " more threads");
            long grown = usedMemory() - memory;
            assertTrue(grown < 8 << 20, "the heap grew by " + grown + " bytes, " + grown / calls + " a call");
            long newBuffers = directBuffers() - buffers;
            assertTrue(newBuffers <= 4 * atOnce, newBuffers + " more direct buffers");
        }
    }

    /** Counts the buffers outside of the heap, which threads and connections keep. */
    private static long directBuffers() {
        return ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
                .filter(pool -> pool.getName().equals("direct"))
                .mapToLong(BufferPoolMXBean::getCount)
                .sum();
    }

    private static long usedMemory() throws InterruptedException {
        for (int pass = 0; pass < 3; pass++) {
            System.gc();
            Thread.sleep(50);
        }
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    /** Mostly answers; one request in sixty is cut off, refused, malformed or reset, and a few are never answered. */
    private static void mixed(HostileServer.Request request) throws Exception {
        if (request.number % 2_500 == 200) {
            request.awaitClose();
        }
        switch (request.number % 250) {
            case 0 -> {
                request.send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{");
                request.socket.close();
            }
            case 50 -> request.answer(400, "", "no");
            case 100 -> request.answer(200, "", "{");
            case 150 -> request.reset();
            default -> request.answer("blue");
        }
    }

    private static AtomicInteger run(EndpointClient client, int calls, int atOnce) throws Exception {
        AtomicInteger answered = new AtomicInteger();
        Semaphore places = new Semaphore(atOnce);
        List<Throwable> unexpected = new ArrayList<>();
        ModelRequest request = QUESTION.withDeadline(Duration.ofSeconds(5));
        for (int call = 0; call < calls; call++) {
            places.acquire();
            CompletableFuture<Answer> future = client.sendAsync(request);
            future.whenComplete((answer, error) -> {
                if (error == null) {
                    answered.incrementAndGet();
                } else if (!(error instanceof EndpointException)) {
                    synchronized (unexpected) {
                        unexpected.add(error);
                    }
                }
                places.release();
            });
        }
        places.acquire(atOnce);
        assertEquals(List.of(), unexpected);
        return answered;
    }

    @Test
    void closedClientsLeaveNoThreads() throws Exception {
        try (HostileServer server = new HostileServer(request -> request.answer("blue"))) {
            long before = clientThreads();
            for (int count = 0; count < 10; count++) {
                try (EndpointClient client = client(server)) {
                    client.send(QUESTION);
                } catch (EndpointException error) {
                    throw new ExecutionException(error);
                }
            }
            long left = Long.MAX_VALUE;
            for (int wait = 0; wait < 100 && left > before; wait++) {
                System.gc();
                Thread.sleep(100);
                left = clientThreads();
            }
            assertTrue(left <= before, left - before + " threads are left of 10 clients");
        }
    }

    private static long clientThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(each -> each.getName().startsWith("endpoint-client-")
                        || each.getName().contains("SelectorManager"))
                .count();
    }
}
