package inferenceblueprints.endpoint;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/**
 * Calls a front door with an API key, with tokens that live for some seconds, and with what it must refuse, and prints what it
 * got. tests/java starts it with the address, a model, a key, a key whose budget is spent, and two tokens.
 */
final class DoorProbe {
    private DoorProbe() {}

    public static void main(String[] arguments) throws Exception {
        URI address = URI.create(arguments[0]);
        String model = arguments[1];
        ObjectNode out = Json.MAPPER.createObjectNode();
        ModelRequest question = ModelRequest.chat("Count.").withMaxTokens(9);
        try (EndpointClient client = client(address, model, () -> arguments[2])) {
            Answer answer = client.send(question);
            out.put("answer", answer.text());
            StringBuilder parts = new StringBuilder();
            out.put("streamed", client.streamAsync(question, parts::append).get().text());
            out.put("parts", parts.toString());
        }
        List<String> tokens = List.of(arguments[4], arguments[5]);
        AtomicInteger fetched = new AtomicInteger();
        // The first one has expired for this client after its call, so that the second call needs the next.
        RefreshingToken token = RefreshingToken.of(() -> {
            int number = fetched.getAndIncrement();
            return new RefreshingToken.Token(tokens.get(number), Instant.now().plusSeconds(number == 0 ? 11 : 300));
        });
        try (EndpointClient client = client(address, model, token)) {
            out.put("withToken", client.send(question).text());
            while (fetched.get() == 1) {
                client.send(question);
            }
            out.put("withNextToken", client.send(question).text());
        }
        out.put("wrongKey", refusal(address, model, "ibk-" + "0".repeat(12) + "-" + "0".repeat(43), question));
        out.put("unknownModel", refusal(address, "nobody/knows", arguments[2], question));
        out.put("poor", refusal(address, model, arguments[3], question.withMaxTokens(1000)));
        System.out.println(Json.MAPPER.writeValueAsString(out));
    }

    private static EndpointClient client(URI address, String model, Supplier<String> token) {
        return EndpointClient.builder(address)
                .model(model)
                .deadline(Duration.ofSeconds(30))
                .withoutHedging()
                .authentication(Authentication.bearer(token))
                .build();
    }

    private static String refusal(URI address, String model, String key, ModelRequest question) {
        try (EndpointClient client = client(address, model, () -> key)) {
            client.send(question.sentOnce());
            return "answered";
        } catch (EndpointException error) {
            return error.reason() + " " + error.status() + " " + error.getMessage();
        }
    }
}
