package inferenceblueprints.adserver;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;

class AdServerTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Answers with the text, unless it is null: then it does not answer before the end of the test. */
    private static HttpServer model(String text) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(Executors.newSingleThreadExecutor(run -> {
            Thread thread = new Thread(run);
            thread.setDaemon(true);
            return thread;
        }));
        server.createContext("/v1/chat/completions", exchange -> {
            JsonNode request = JSON.readTree(exchange.getRequestBody());
            if (text == null) {
                return;
            }
            var answer = JSON.createObjectNode().put("model", request.get("model").textValue());
            var choice = answer.putArray("choices").addObject().put("index", 0).put("finish_reason", "stop");
            choice.putObject("message").put("role", "assistant").put("content", text);
            answer.putObject("usage").put("prompt_tokens", 7).put("completion_tokens", request.get("max_tokens").asInt());
            byte[] bytes = JSON.writeValueAsBytes(answer);
            exchange.sendResponseHeaders(200, bytes.length);
            exchange.getResponseBody().write(bytes);
            exchange.close();
        });
        server.start();
        return server;
    }

    private static JsonNode ad(String modelAnswer) throws Exception {
        HttpServer model = model(modelAnswer);
        URI endpoint = URI.create("http://127.0.0.1:" + model.getAddress().getPort());
        try (AdServer server = new AdServer(endpoint, "small", Duration.ofMillis(1_500), 8)) {
            HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + server.port() + "/ad"))
                    .POST(HttpRequest.BodyPublishers.ofString("red runners, size 9"))
                    .build();
            HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
            HttpResponse<String> answer =
                    client.send(request, HttpResponse.BodyHandlers.ofString(StandardCharsets.UTF_8));
            assertEquals(200, answer.statusCode());
            return JSON.readTree(answer.body());
        } finally {
            model.stop(0);
        }
    }

    @Test
    void theModelChoosesTheAd() throws Exception {
        JsonNode ad = ad("{\"goal\":\"BUY\"}");
        assertEquals("for shoppers who buy", ad.get("ad").textValue());
        assertEquals(false, ad.get("fallback").booleanValue());
        assertEquals(7, ad.get("promptTokens").intValue());
        assertEquals(8, ad.get("answerTokens").intValue());
    }

    @Test
    void withoutAUsableAnswerThePageGetsTheFallback() throws Exception {
        JsonNode wrong = ad("words");
        assertEquals("for shoppers who browse", wrong.get("ad").textValue());
        assertEquals("INVALID_ANSWER", wrong.get("why").textValue());
        assertEquals("DEADLINE", ad(null).get("why").textValue());
    }
}
