package inferenceblueprints.endpoint;

import static inferenceblueprints.endpoint.Calls.QUESTION;
import static inferenceblueprints.endpoint.Calls.client;
import static inferenceblueprints.endpoint.Calls.fails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import inferenceblueprints.endpoint.EndpointException.Reason;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpHeaders;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class RetriesTest {
    private static HostileServer.Behaviour firstOnly(HostileServer.Behaviour failure) {
        return request -> {
            if (request.number == 1) {
                failure.serve(request);
            }
            request.answer("blue");
        };
    }

    static Stream<Named<HostileServer.Behaviour>> passing() {
        return Stream.of(
                Named.of("503", request -> request.answer(503, "Connection: close\r\n", "")),
                Named.of("502", request -> request.answer(502, "", "")),
                Named.of("reset", HostileServer.Request::reset),
                Named.of("closed", request -> request.socket.close()),
                Named.of("truncated", request -> {
                    request.send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{");
                    request.socket.close();
                }));
    }

    @ParameterizedTest
    @MethodSource("passing")
    void aPassingFailureIsRepeated(HostileServer.Behaviour failure) throws Exception {
        // The failing connection answers no second request in the same breath, so the two never mix.
        try (HostileServer server = new HostileServer(request -> {
                    if (request.number == 1) {
                        failure.serve(request);
                        throw new java.io.EOFException();
                    }
                    request.answer("blue");
                });
                EndpointClient client = client(server)) {
            assertEquals("blue", client.send(QUESTION).text());
            assertEquals(2, server.requests.get());
        }
    }

    @Test
    void anIdleConnectionThatTheServerClosedCostsOneRetry() throws Exception {
        try (HostileServer server = new HostileServer(request -> {
                    request.answer("blue");
                    request.socket.setSoTimeout(50);
                });
                EndpointClient client = client(server)) {
            for (int call = 0; call < 30; call++) {
                assertEquals("blue", client.send(QUESTION).text());
                Thread.sleep(49 + call % 4);
            }
        }
    }

    @Test
    void retryAfterIsHonoured() throws Exception {
        try (HostileServer server =
                        new HostileServer(firstOnly(request -> {
                            request.answer(429, "Retry-After: 1\r\n", "");
                            throw new java.io.EOFException();
                        }));
                EndpointClient client = client(server)) {
            long began = System.nanoTime();
            assertEquals("blue", client.send(QUESTION).text());
            assertTrue(System.nanoTime() - began >= Duration.ofSeconds(1).toNanos(), "asked again too early");
        }
    }

    @Test
    void aRetryAfterBeyondTheDeadlineFailsAtOnce() throws Exception {
        try (HostileServer server =
                        new HostileServer(request -> request.answer(503, "Retry-After: 600\r\n", "full"));
                EndpointClient client = client(server)) {
            EndpointException failure =
                    fails(Reason.UNAVAILABLE, () -> client.send(QUESTION.withDeadline(Duration.ofMinutes(5))));
            assertEquals(Duration.ofMinutes(10), failure.retryAfter().orElseThrow());
            assertEquals(503, failure.status());
            assertEquals(1, server.requests.get());
        }
    }

    @Test
    void retryAfterIsReadAsSecondsOrDate() {
        Instant now = Instant.parse("2026-11-23T10:00:00Z");
        assertEquals(Duration.ofSeconds(7), asked("7", now));
        assertEquals(Duration.ofSeconds(30), asked("Mon, 23 Nov 2026 10:00:30 GMT", now));
        assertEquals(Duration.ZERO, asked("Mon, 23 Nov 2026 09:00:00 GMT", now));
        assertNull(asked("soon", now));
        assertNull(asked("-1", now));
        assertNull(asked("99999999999999999999", now));
    }

    private static Duration asked(String value, Instant now) {
        return RetryDelay.asked(HttpHeaders.of(Map.of("Retry-After", List.of(value)), (name, each) -> true), now);
    }

    @Test
    void whatIsNotSafeIsNotRepeated() throws Exception {
        try (HostileServer server = new HostileServer(request -> request.answer(503, "", ""));
                EndpointClient client = client(server)) {
            fails(Reason.UNAVAILABLE, () -> client.send(QUESTION.sentOnce()));
            assertEquals(1, server.requests.get());
            // A request that crashes its worker would crash the next one too.
            server.behave(request -> request.answer(500, "", ""));
            fails(Reason.REFUSED, () -> client.send(QUESTION));
            assertEquals(2, server.requests.get());
        }
    }

    @Test
    void aBurstOfFailuresGetsNoMoreRetriesThanTheBudget() throws Exception {
        int calls = 300;
        int retryTokens = 70;
        try (HostileServer server = new HostileServer(request -> request.answer(503, "", ""));
                EndpointClient client = client(server, builder -> builder
                        .retryTokens(retryTokens)
                        .circuit(100, 1_000_000, Duration.ofSeconds(1), Duration.ofSeconds(1)))) {
            for (int call = 0; call < calls; call++) {
                fails(Reason.UNAVAILABLE, () -> client.send(QUESTION));
            }
            assertEquals(calls + retryTokens / RetryBudget.COST, server.requests.get());
            // Successes fill the budget again.
            server.behave(request -> request.answer("blue"));
            for (int call = 0; call < RetryBudget.COST; call++) {
                client.send(QUESTION);
            }
            int before = server.requests.get();
            server.behave(request -> request.answer(503, "", ""));
            fails(Reason.UNAVAILABLE, () -> client.send(QUESTION));
            assertEquals(before + 2, server.requests.get());
        }
    }

    @Test
    void aRetryThatHelpsReturnsItsTokens() {
        RetryBudget budget = new RetryBudget(RetryBudget.COST);
        assertTrue(budget.take(RetryBudget.COST));
        assertEquals(false, budget.take(RetryBudget.COST_THROTTLED));
        budget.succeeded(RetryBudget.COST);
        assertTrue(budget.take(RetryBudget.COST));
    }

    @Test
    void aPortThatNobodyListensOnIsNamed() throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        try (EndpointClient client = EndpointClient.builder(URI.create("http://127.0.0.1:" + port)).model("m").build()) {
            fails(Reason.CONNECTION, () -> client.send(QUESTION));
        }
    }
}
