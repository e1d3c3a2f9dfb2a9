package inferenceblueprints.endpoint;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.time.Duration;

/** Calls an endpoint in turns with several sessions and without one, and prints the answers by session. tests/java starts it. */
final class SessionProbe {
    private SessionProbe() {}

    public static void main(String[] arguments) throws Exception {
        ObjectNode out = Json.MAPPER.createObjectNode();
        try (EndpointClient client = EndpointClient.builder(URI.create(arguments[0]))
                .model(arguments[1])
                .deadline(Duration.ofSeconds(60))
                .withoutHedging()
                .build()) {
            for (int round = 0; round < 5; round++) {
                for (int session = 0; session < 16; session++) {
                    ModelRequest question = ModelRequest.chat("Round " + round + " of " + session).withMaxTokens(8);
                    ModelRequest sent = session == 0 ? question : question.withSession("session-" + session);
                    out.withArrayProperty("session-" + session).add(client.send(sent).text());
                }
            }
        }
        System.out.println(Json.MAPPER.writeValueAsString(out));
    }
}
