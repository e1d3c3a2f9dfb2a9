package inferenceblueprints.endpoint;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.time.Duration;

/** Calls the endpoint and the model of its arguments, and prints the answers as JSON. tests/java starts it. */
final class Probe {
    record Colour(String name) {}

    private Probe() {}

    public static void main(String[] arguments) throws Exception {
        ObjectNode out = Json.MAPPER.createObjectNode();
        try (EndpointClient client = EndpointClient.builder(URI.create(arguments[0]))
                .model(arguments[1])
                .deadline(Duration.ofSeconds(60))
                .build()) {
            ModelRequest question = ModelRequest.chat("Name a colour.").withMaxTokens(4_000);
            out.put("interactive", client.send(question).text());
            ModelRequest plain = ModelRequest.completion("The sky is").withMaxTokens(4_000);
            out.put("completion", client.send(plain).text());
            out.put("batch", client.send(question.withPriority(Priority.BATCH)).text());
            Answer session = client.send(question.withSession("session-1"));
            out.put("session", session.text()).put("promptTokens", session.usage().promptTokens());
            StringBuilder parts = new StringBuilder();
            int count = 0;
            try (AnswerStream stream = client.stream(question)) {
                for (String part : stream) {
                    parts.append(part);
                    count++;
                }
                out.put("streamUsage", stream.answer().orElseThrow().usage().answerTokens());
            }
            out.put("stream", parts.toString()).put("parts", count);
            Decision<Colour> decision = client.decide(question, Structure.of(Colour.class, new Colour("grey")));
            out.put("decision", decision.value().name()).put("fallback", decision.isFallback());
            out.put("decisionText", decision.answer().map(Answer::text).orElse(""));
            try {
                client.send(question.withModel("no-such-model"));
            } catch (EndpointException refused) {
                out.put("refused", refused.reason() + " " + refused.status());
            }
        }
        System.out.println(Json.MAPPER.writeValueAsString(out));
    }
}
