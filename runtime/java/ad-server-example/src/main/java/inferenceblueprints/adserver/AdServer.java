package inferenceblueprints.adserver;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import inferenceblueprints.endpoint.Answer;
import inferenceblueprints.endpoint.Decision;
import inferenceblueprints.endpoint.Described;
import inferenceblueprints.endpoint.EndpointClient;
import inferenceblueprints.endpoint.ModelRequest;
import inferenceblueprints.endpoint.Structure;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Answers {@code POST /ad} with an ad that fits what a shopper wants. The body is what the shopper saw and searched for.
 *
 * <p>The model is one step of the decision. If it has not answered at the deadline, the ad is the one for shoppers who
 * browse, so the page is never late.
 */
public final class AdServer implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int LONGEST_BODY = 1 << 20;
    private static final Structure<Intent> INTENT =
            Structure.of(Intent.class, new Intent(Goal.BROWSE)).withoutExplanation();

    private final EndpointClient client;
    private final int answerTokens;
    private final HttpServer server;
    private final ExecutorService threads = Executors.newFixedThreadPool(2);

    /** What a shopper wants. */
    public enum Goal {
        /** To buy now. */
        BUY,
        /** To compare products. */
        COMPARE,
        /** To look around. */
        BROWSE
    }

    /**
     * What the model decides.
     *
     * @param goal what the shopper wants
     */
    public record Intent(@Described("what the shopper wants") Goal goal) {}

    /**
     * Starts the server on a free port of 127.0.0.1.
     *
     * @param endpoint address of the model's endpoint
     * @param model name of the model
     * @param deadline how long the page waits for the model
     * @param answerTokens most tokens of the model's answer
     * @throws IOException if no port is free
     */
    public AdServer(URI endpoint, String model, Duration deadline, int answerTokens) throws IOException {
        this.answerTokens = answerTokens;
        client = EndpointClient.builder(endpoint).model(model).deadline(deadline).build();
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/ad", this::decide);
        server.start();
    }

    /**
     * Returns where the server listens.
     *
     * @return its port
     */
    public int port() {
        return server.getAddress().getPort();
    }

    private void decide(HttpExchange exchange) throws IOException {
        byte[] body = exchange.getRequestBody().readNBytes(LONGEST_BODY);
        ModelRequest request = ModelRequest.chat(new String(body, StandardCharsets.UTF_8))
                .withSystem("What does the shopper want?")
                .withMaxTokens(answerTokens);
        // No thread waits for the model. The decision comes on a thread of the client, and is written on one of ours.
        client.decideAsync(request, INTENT)
                .thenAcceptAsync(decision -> answer(exchange, decision), threads)
                .whenComplete((none, error) -> exchange.close());
    }

    private static void answer(HttpExchange exchange, Decision<Intent> decision) {
        ObjectNode answer = JSON.createObjectNode()
                .put("ad", "for shoppers who " + decision.value().goal().name().toLowerCase(java.util.Locale.ROOT))
                .put("fallback", decision.isFallback());
        decision.failure().ifPresent(why -> answer.put("why", why.reason().name()));
        decision.answer().map(Answer::usage).ifPresent(usage -> answer.put("promptTokens", usage.promptTokens())
                .put("answerTokens", usage.answerTokens()));
        try {
            byte[] bytes = JSON.writeValueAsBytes(answer);
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, bytes.length);
            exchange.getResponseBody().write(bytes);
        } catch (IOException gone) {
            throw new UncheckedIOException(gone);
        }
    }

    /** Ends the server and its calls. */
    @Override
    public void close() {
        server.stop(0);
        client.close();
        threads.shutdown();
    }

    /**
     * Serves until the process ends.
     *
     * @param arguments address of the endpoint, name of the model, deadline in milliseconds, most tokens of an answer
     * @throws IOException if no port is free
     */
    @SuppressWarnings("resource") // it serves until the process ends
    public static void main(String[] arguments) throws IOException {
        AdServer server = new AdServer(
                URI.create(arguments[0]),
                arguments[1],
                Duration.ofMillis(Long.parseLong(arguments[2])),
                Integer.parseInt(arguments[3]));
        System.out.println("listening on http://127.0.0.1:" + server.port());
    }
}
