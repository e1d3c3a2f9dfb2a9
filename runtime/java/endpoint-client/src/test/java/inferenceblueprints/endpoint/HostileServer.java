package inferenceblueprints.endpoint;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** An HTTP server on a plain socket, so that a test can break every rule. It listens on loopback only. */
final class HostileServer implements AutoCloseable {
    /** What the server does with a request. */
    interface Behaviour {
        void serve(Request request) throws Exception;
    }

    /** A request that was read completely. */
    final class Request {
        final int number;
        final String path;
        final Map<String, String> headers;
        final String body;
        final Socket socket;
        final InputStream in;
        final OutputStream out;

        private Request(Socket socket, InputStream in, String head) throws IOException {
            this.number = requests.incrementAndGet();
            this.socket = socket;
            this.in = in;
            this.out = socket.getOutputStream();
            String[] lines = head.split("\r\n");
            path = lines[0].split(" ")[1];
            headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
            for (int index = 1; index < lines.length; index++) {
                int colon = lines[index].indexOf(':');
                headers.put(lines[index].substring(0, colon), lines[index].substring(colon + 1).strip());
            }
            int length = Integer.parseInt(headers.getOrDefault("content-length", "0"));
            body = new String(in.readNBytes(length), StandardCharsets.UTF_8);
        }

        void send(String text) throws IOException {
            out.write(text.getBytes(StandardCharsets.UTF_8));
            out.flush();
        }

        void answer(int status, String more, String text) throws IOException {
            int length = text.getBytes(StandardCharsets.UTF_8).length;
            send("HTTP/1.1 " + status + " X\r\n" + more + "Content-Length: " + length + "\r\n\r\n" + text);
        }

        void answer(String text) throws IOException {
            answer(200, "Content-Type: application/json\r\n", chat(text));
        }

        void events() throws IOException {
            send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
        }

        void chunk(String text) throws IOException {
            send(Integer.toHexString(text.getBytes(StandardCharsets.UTF_8).length) + "\r\n" + text + "\r\n");
        }

        void part(String text) throws IOException {
            chunk("data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"" + text + "\"}}]}\n\n");
        }

        void end() throws IOException {
            chunk("data: [DONE]\n\n");
            chunk("");
        }

        void reset() throws IOException {
            socket.setSoLinger(true, 0);
            socket.close();
        }

        /** Waits for the client to close, and says so to the test. */
        void awaitClose() throws IOException {
            try {
                while (in.read() >= 0) {}
            } catch (IOException reset) {
                // A reset is a close too.
            }
            closedByClient.countDown();
            throw new EOFException();
        }
    }

    final AtomicInteger requests = new AtomicInteger();
    final AtomicInteger accepted = new AtomicInteger();
    final AtomicInteger open = new AtomicInteger();
    private final CountDownLatch closedByClient = new CountDownLatch(1);
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private final ServerSocket server;
    private volatile Behaviour behaviour;

    HostileServer(Behaviour behaviour) throws IOException {
        this(behaviour, InetAddress.getByName("127.0.0.1"), 0);
    }

    HostileServer(Behaviour behaviour, InetAddress address, int port) throws IOException {
        this(behaviour, new ServerSocket(port, 1024, address));
    }

    HostileServer(Behaviour behaviour, ServerSocket server) {
        this.behaviour = behaviour;
        this.server = server;
        start(this::accept);
    }

    private static void start(Runnable work) {
        Thread thread = new Thread(work, "hostile-server");
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() {
        try {
            while (true) {
                Socket socket = server.accept();
                accepted.incrementAndGet();
                open.incrementAndGet();
                sockets.add(socket);
                start(() -> serve(socket));
            }
        } catch (IOException closed) {
            // The test is over.
        }
    }

    private void serve(Socket socket) {
        try (socket) {
            socket.setTcpNoDelay(true);
            InputStream in = new BufferedInputStream(socket.getInputStream());
            for (String head = head(in); head != null; head = head(in)) {
                behaviour.serve(new Request(socket, in, head));
            }
        } catch (Exception ended) {
            // The behaviour ends the connection as it likes.
        } finally {
            sockets.remove(socket);
            open.decrementAndGet();
        }
    }

    private static String head(InputStream in) throws IOException {
        ByteArrayOutputStream head = new ByteArrayOutputStream();
        int last = 0;
        for (int each = in.read(); each >= 0; each = in.read()) {
            head.write(each);
            last = last << 8 | each;
            if (last == 0x0D0A0D0A) {
                return head.toString(StandardCharsets.ISO_8859_1);
            }
        }
        return null;
    }

    void behave(Behaviour next) {
        behaviour = next;
    }

    boolean sawClose() throws InterruptedException {
        return closedByClient.await(30, TimeUnit.SECONDS);
    }

    int port() {
        return server.getLocalPort();
    }

    URI uri() {
        return URI.create("http://127.0.0.1:" + port());
    }

    static String chat(String text) {
        return "{\"model\":\"m\",\"choices\":[{\"message\":{\"content\":\"" + text + "\"},\"finish_reason\":\"stop\"}],"
                + "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":4}}}";
    }

    @Override
    public void close() throws IOException {
        server.close();
        for (Socket each : sockets) {
            each.close();
        }
    }
}
