package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.sun.net.httpserver.HttpServer;
import inferenceblueprints.endpoint.EndpointClient;
import inferenceblueprints.endpoint.EndpointException;
import inferenceblueprints.endpoint.ModelRequest;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What answers of a front door mean for the events that were asked about. */
class FailureTest {
    private static EndpointException answered(int status, String code, String retryAfter) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
        server.createContext("/", exchange -> {
            exchange.getRequestBody().readAllBytes();
            if (retryAfter != null) {
                exchange.getResponseHeaders().set("Retry-After", retryAfter);
            }
            byte[] body = ("{\"error\":{\"message\":\"why\",\"type\":\"t\",\"param\":null,\"code\":\"" + code + "\"}}")
                    .getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(status, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
        URI address = URI.create("http://127.0.0.1:" + server.getAddress().getPort());
        try (EndpointClient client = EndpointClient.builder(address)
                .model("streaming:shopper")
                .maxAttempts(1)
                .deadline(Duration.ofSeconds(20))
                .build()) {
            return assertThrows(EndpointException.class, () -> client.send(ModelRequest.chat("?")));
        } finally {
            server.stop(0);
        }
    }

    /** Statuses and codes are those of runtime/front_door/policy.py, callers.py and render/front_door/errors.py. */
    @ParameterizedTest
    @CsvSource({
        "429, rate_limit_exceeded, 7, PASSING, endpoint, 7000",
        "429, too_many_wrong_keys, 60, PASSING, endpoint, 60000",
        "503, budgets_unavailable, 1, PASSING, endpoint, 1000",
        "503, keys_unavailable, 5, PASSING, endpoint, 5000",
        "503, model_unavailable, 2, PASSING, endpoint, 2000",
        "502, bad_answer, , PASSING, endpoint, 0",
        "504, model_timeout, , PASSING, endpoint, 0",
        "401, invalid_api_key, , WAITING, endpoint, 0",
        "429, insufficient_quota, 2, WAITING, budget, 2000",
        "429, insufficient_quota, 2592000, WAITING, budget, 10000",
        "400, context_length_exceeded, , FINAL, endpoint, 0",
        "403, other_project, , FINAL, endpoint, 0",
        "404, model_not_found, , FINAL, endpoint, 0",
        "413, request_too_large, , FINAL, endpoint, 0"
    })
    void answersOfADoor(int status, String code, String retryAfter, Failure.Kind kind, String reason, long pause)
            throws Exception {
        Failure failure = Failure.of(answered(status, code, retryAfter), true);
        assertEquals(kind, failure.kind(), failure.message());
        assertEquals(reason, failure.reason());
        assertEquals(pause, failure.pauseMillis());
    }

    /** Without a door, nobody reads a key again, and another server may use the same words. */
    @ParameterizedTest
    @CsvSource({"401, invalid_api_key, , FINAL, 0", "429, insufficient_quota, 2592000, PASSING, 2592000000"})
    void theSameAnswersOfAnotherEndpoint(int status, String code, String retryAfter, Failure.Kind kind, long pause)
            throws Exception {
        Failure failure = Failure.of(answered(status, code, retryAfter), false);
        assertEquals(kind, failure.kind());
        assertEquals("endpoint", failure.reason());
        assertEquals(pause, failure.pauseMillis());
    }

    @Test
    void aKeyThatIsNotThereYetIsWaitedFor() {
        Failure failure = Failure.of(new DoorKey.MissingException("no key yet"), true);
        assertEquals(Failure.Kind.WAITING, failure.kind());
        assertEquals("no key yet", failure.message());
    }

    @Test
    void aDefectIsFinal() {
        Failure failure = Failure.of(new IllegalStateException(), true);
        assertEquals(Failure.Kind.FINAL, failure.kind());
        assertEquals("java.lang.IllegalStateException", failure.message());
    }
}
