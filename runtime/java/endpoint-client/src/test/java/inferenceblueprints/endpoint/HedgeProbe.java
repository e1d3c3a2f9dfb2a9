package inferenceblueprints.endpoint;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Asks an endpoint whole, as a stream, for a record, and until a call is hedged. Prints the answers as JSON. tests/llama
 * starts it with the endpoint and the model.
 */
final class HedgeProbe {
    /** Short calls, each of which earns a fiftieth of a hedge. */
    private static final int SHORT_CALLS = 49;

    private static final int LONG_TOKENS = 60;

    /** Random weights would seldom end a text, so the schema leaves the choice between two words. */
    enum Colour {
        RED,
        BLUE
    }

    record Choice(Colour colour) {}

    private HedgeProbe() {}

    public static void main(String[] arguments) throws Exception {
        ObjectNode out = Json.MAPPER.createObjectNode();
        AtomicInteger hedges = new AtomicInteger();
        AtomicInteger attempts = new AtomicInteger();
        EndpointClient.Builder builder = EndpointClient.builder(URI.create(arguments[0]))
                .model(arguments[1])
                .deadline(Duration.ofSeconds(60));
        try (EndpointClient client = builder.withoutHedging().build()) {
            ModelRequest question = request("Name a colour.", LONG_TOKENS);
            Answer whole = client.send(question);
            out.put("whole", whole.text()).put("wholeTokens", whole.usage().answerTokens());
            StringBuilder parts = new StringBuilder();
            int count = 0;
            try (AnswerStream stream = client.stream(question)) {
                for (String part : stream) {
                    parts.append(part);
                    count++;
                }
                out.put("streamTokens", stream.answer().orElseThrow().usage().answerTokens());
            }
            out.put("stream", parts.toString()).put("parts", count);
            Structure<Choice> structure = Structure.of(Choice.class, new Choice(Colour.RED)).withoutExplanation();
            ModelRequest choice = ModelRequest.chat("Name a colour.").withMaxTokens(200).withTemperature(0);
            Decision<Choice> decision = client.decide(choice, structure);
            out.put("decision", decision.value().colour().name()).put("fallback", decision.isFallback());
        }
        builder = EndpointClient.builder(URI.create(arguments[0]))
                .model(arguments[1])
                .deadline(Duration.ofSeconds(60))
                .hedgeAfter(Duration.ofMillis(1))
                .listener(start -> end -> {
                    hedges.addAndGet(end.hedges());
                    attempts.addAndGet(end.attempts());
                });
        try (EndpointClient client = builder.build()) {
            for (int call = 0; call < SHORT_CALLS; call++) {
                client.send(request("Call " + call, 1));
            }
            out.put("hedgesBefore", hedges.get());
            out.put("hedged", client.send(request("Name a colour.", LONG_TOKENS)).text());
        }
        out.put("hedges", hedges.get()).put("attempts", attempts.get()).put("calls", SHORT_CALLS + 1);
        System.out.println(Json.MAPPER.writeValueAsString(out));
    }

    private static ModelRequest request(String question, int tokens) {
        return ModelRequest.chat(question).withMaxTokens(tokens).withTemperature(0).withField("ignore_eos", true);
    }
}
