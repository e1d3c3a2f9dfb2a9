package inferenceblueprints.endpoint;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import java.util.function.UnaryOperator;

/** What tests of the client share. */
final class Calls {
    static final ModelRequest QUESTION = ModelRequest.chat("Name a colour.").withMaxTokens(8);

    private Calls() {}

    static EndpointClient client(HostileServer server, UnaryOperator<EndpointClient.Builder> more) {
        EndpointClient.Builder builder = EndpointClient.builder(server.uri())
                .model("m")
                .deadline(Duration.ofSeconds(20))
                .withoutHedging();
        return more.apply(builder).build();
    }

    static EndpointClient client(HostileServer server) {
        return client(server, builder -> builder);
    }

    static EndpointException fails(EndpointException.Reason reason, org.junit.jupiter.api.function.Executable call) {
        EndpointException failure = assertThrows(EndpointException.class, call);
        assertEquals(reason, failure.reason(), failure.getMessage());
        return failure;
    }

    /** Waits until no call is in flight: a call that its caller ended gives its place back a moment later. */
    static void nothingInFlight(EndpointClient client) throws InterruptedException {
        for (int wait = 0; client.inFlight() > 0 && wait < 1_000; wait++) {
            Thread.sleep(10);
        }
        assertEquals(0, client.inFlight());
    }
}
