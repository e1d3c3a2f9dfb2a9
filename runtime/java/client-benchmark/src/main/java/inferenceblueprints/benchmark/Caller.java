package inferenceblueprints.benchmark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.openai.client.OpenAIClientAsync;
import com.openai.client.okhttp.OpenAIOkHttpClientAsync;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import inferenceblueprints.endpoint.EndpointClient;
import inferenceblueprints.endpoint.ModelRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** Sends one chat completion and returns the text of its answer. */
interface Caller {
    /** Sends a request. */
    CompletableFuture<String> call();

    /** The model that the requests name. */
    String MODEL = "model";
    /** The prompt, as an ad server's: about 500 tokens. */
    String PROMPT = "shopper looked at red running shoes, size 43; ".repeat(40);
    /** Most tokens of an answer. */
    int MOST_TOKENS = 8;
    /** Idle connections: those of openai-java would otherwise be five. */
    int IDLE_CONNECTIONS = 1024;
    /** The limit of a call. */
    Duration LIMIT = Duration.ofSeconds(10);

    /** Returns the client of a name: ours, openai or jdk. */
    static Caller of(String name, URI endpoint) {
        return switch (name) {
            case "ours" -> ours(endpoint);
            case "openai" -> openai(endpoint);
            case "jdk" -> jdk(endpoint);
            default -> throw new IllegalArgumentException(name + ": the clients are ours, openai and jdk");
        };
    }

    private static Caller ours(URI endpoint) {
        EndpointClient client = EndpointClient.builder(endpoint)
                .model(MODEL)
                .deadline(LIMIT)
                .maxInFlight(IDLE_CONNECTIONS)
                .build();
        ModelRequest request = ModelRequest.chat(PROMPT).withMaxTokens(MOST_TOKENS);
        return () -> client.sendAsync(request).thenApply(answer -> answer.text());
    }

    private static Caller openai(URI endpoint) {
        OpenAIClientAsync client = OpenAIOkHttpClientAsync.builder()
                .baseUrl(endpoint + "/v1")
                .apiKey("none")
                .maxIdleConnections(IDLE_CONNECTIONS)
                .keepAliveDuration(Duration.ofSeconds(30))
                .timeout(LIMIT)
                .build();
        ChatCompletionCreateParams request = ChatCompletionCreateParams.builder()
                .model(MODEL)
                .addUserMessage(PROMPT)
                .maxCompletionTokens(MOST_TOKENS)
                .build();
        return () -> client.chat()
                .completions()
                .create(request)
                .thenApply(answer -> answer.choices().get(0).message().content().orElseThrow());
    }

    /** The least that a caller of the JDK's client must write: it has no deadline for the body, no retries and no limits. */
    private static Caller jdk(URI endpoint) {
        ObjectMapper json = new ObjectMapper();
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        URI address = URI.create(endpoint + "/v1/chat/completions");
        Map<String, Object> request =
                Map.of("model", MODEL, "messages", new Object[] {Map.of("role", "user", "content", PROMPT)}, "max_tokens", MOST_TOKENS);
        return () -> {
            try {
                HttpRequest wire = HttpRequest.newBuilder(address)
                        .header("Content-Type", "application/json")
                        .timeout(LIMIT)
                        .POST(HttpRequest.BodyPublishers.ofByteArray(json.writeValueAsBytes(request)))
                        .build();
                return client.sendAsync(wire, HttpResponse.BodyHandlers.ofByteArray()).thenApply(answer -> text(json, answer.body()));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        };
    }

    private static String text(ObjectMapper json, byte[] body) {
        try {
            JsonNode answer = json.readTree(body);
            return answer.path("choices").path(0).path("message").path("content").textValue();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
