package inferenceblueprints.enrichment;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Locale;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Function;

/** A model's endpoint whose faults a test chooses. It answers with the last line of the user's message. */
final class ModelServer implements AutoCloseable {
    private static final JsonMapper MAPPER = JsonMapper.builder().build();

    /** How the server treats a request. */
    enum Behaviour {
        ANSWER,
        SLOW,
        UNAVAILABLE,
        ASK_TO_WAIT,
        REFUSE,
        EMPTY,
        DRIP,
        RESET,
        END_IN_THE_MIDDLE,
        HANG
    }

    /** A request: its session's header and its messages. */
    record Request(String session, JsonNode body) {
        String user() {
            return body.get("messages").get(body.get("messages").size() - 1).get("content").textValue();
        }
    }

    private final ServerSocket listening = new ServerSocket(0, 512, InetAddress.getByName("127.0.0.1"));
    private final ExecutorService threads = Executors.newCachedThreadPool(work -> {
        Thread thread = new Thread(work, "model server");
        thread.setDaemon(true);
        return thread;
    });
    final Collection<Request> requests = new ConcurrentLinkedQueue<>();
    /** Requests whose caller left before the answer. */
    final Collection<Request> left = new ConcurrentLinkedQueue<>();
    volatile Function<Request, Behaviour> behaviour = request -> Behaviour.ANSWER;
    volatile long slowMillis = 1_500;

    ModelServer() throws IOException {
        threads.execute(() -> {
            while (!listening.isClosed()) {
                try {
                    Socket socket = listening.accept();
                    threads.execute(() -> serve(socket));
                } catch (IOException closed) {
                    return;
                }
            }
        });
    }

    String url() {
        return "http://127.0.0.1:" + listening.getLocalPort();
    }

    private void serve(Socket socket) {
        try (socket) {
            InputStream in = new BufferedInputStream(socket.getInputStream());
            OutputStream out = socket.getOutputStream();
            while (answer(in, out, socket)) {}
        } catch (IOException | InterruptedException gone) {
            // The caller closed the connection.
        }
    }

    private boolean answer(InputStream in, OutputStream out, Socket socket) throws IOException, InterruptedException {
        String session = "";
        int length = 0;
        for (String line = line(in); !line.isEmpty(); line = line(in)) {
            String lower = line.toLowerCase(Locale.ROOT);
            if (lower.startsWith("content-length:")) {
                length = Integer.parseInt(lower.substring(15).trim());
            } else if (lower.startsWith("x-dynamo-session-id:")) {
                session = line.substring(20).trim();
            }
        }
        Request request = new Request(session, MAPPER.readTree(in.readNBytes(length)));
        requests.add(request);
        Behaviour chosen = behaviour.apply(request);
        String[] lines = request.user().strip().split("\n");
        switch (chosen) {
            case SLOW, ANSWER -> {
                if (chosen == Behaviour.SLOW) {
                    waitOrLeave(socket, in, request, slowMillis);
                }
                send(out, 200, "", completion(lines[lines.length - 1]));
            }
            case EMPTY -> send(out, 200, "", completion(""));
            case UNAVAILABLE -> send(out, 503, "", "{\"error\":{\"message\":\"busy\"}}");
            case ASK_TO_WAIT -> send(out, 503, "Retry-After: 1\r\n", "{}");
            case REFUSE -> send(out, 400, "", "{\"error\":{\"message\":\"no\"}}");
            case DRIP -> {
                String body = completion(lines[lines.length - 1]);
                out.write(("HTTP/1.1 200 OK\r\nContent-Length: " + (body.length() + 100_000) + "\r\n\r\n").getBytes());
                while (true) {
                    out.write(' ');
                    out.flush();
                    Thread.sleep(50);
                }
            }
            case RESET -> {
                socket.setSoLinger(true, 0);
                socket.close();
                return false;
            }
            case END_IN_THE_MIDDLE -> {
                out.write("HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{\"choices\":".getBytes(StandardCharsets.UTF_8));
                return false;
            }
            case HANG -> waitOrLeave(socket, in, request, 3_600_000);
        }
        return true;
    }

    private void waitOrLeave(Socket socket, InputStream in, Request request, long millis)
            throws IOException, InterruptedException {
        socket.setSoTimeout((int) millis);
        try {
            if (in.read() < 0) {
                left.add(request);
                throw new IOException("the caller left");
            }
        } catch (java.net.SocketTimeoutException over) {
            socket.setSoTimeout(0);
        } catch (IOException reset) {
            left.add(request);
            throw reset;
        }
    }

    private static String completion(String text) {
        String content = MAPPER.getNodeFactory().textNode(text).toString();
        return "{\"model\":\"m\",\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3},\"choices\":[{\"finish_reason\":\"stop\","
                + "\"message\":{\"role\":\"assistant\",\"content\":" + content + "}}]}";
    }

    private static void send(OutputStream out, int status, String headers, String body) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        String head = "HTTP/1.1 " + status + " X\r\nContent-Type: application/json\r\n" + headers + "Content-Length: "
                + bytes.length + "\r\n\r\n";
        out.write(head.getBytes(StandardCharsets.UTF_8));
        out.write(bytes);
        out.flush();
    }

    private static String line(InputStream in) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int each = in.read(); each != '\n'; each = in.read()) {
            if (each < 0) {
                throw new IOException("closed");
            }
            line.append((char) each);
        }
        return line.toString().trim();
    }

    @Override
    public void close() throws IOException {
        listening.close();
        threads.shutdownNow();
    }
}
