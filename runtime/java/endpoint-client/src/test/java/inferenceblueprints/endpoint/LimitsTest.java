package inferenceblueprints.endpoint;

import static inferenceblueprints.endpoint.Calls.QUESTION;
import static inferenceblueprints.endpoint.Calls.client;
import static inferenceblueprints.endpoint.Calls.fails;
import static inferenceblueprints.endpoint.Calls.nothingInFlight;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import inferenceblueprints.endpoint.EndpointException.Reason;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Calls in flight, hedges, and the circuit breaker. */
class LimitsTest {
    @Test
    void callsBeyondTheLimitAreRejectedAtOnceAndPlacesComeBack() throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        try (HostileServer server = new HostileServer(request -> {
                    go.await();
                    request.answer("blue");
                });
                EndpointClient client = client(server, builder -> builder.maxInFlight(2))) {
            CompletableFuture<Answer> first = client.sendAsync(QUESTION);
            CompletableFuture<Answer> second = client.sendAsync(QUESTION);
            EndpointException failure = fails(Reason.TOO_MANY_IN_FLIGHT, () -> client.send(QUESTION));
            assertTrue(failure.getMessage().contains("maxInFlight"));
            assertEquals(2, client.inFlight());
            first.cancel(true);
            CompletableFuture<Answer> third = client.sendAsync(QUESTION);
            go.countDown();
            assertEquals("blue", second.get().text());
            assertEquals("blue", third.get().text());
            nothingInFlight(client);
        }
    }

    @Test
    void aHedgeAnswersForASlowRequestWhichIsCancelled() throws Exception {
        AtomicInteger slow = new AtomicInteger();
        try (HostileServer server = new HostileServer(request -> {
                    if (slow.get() > 0 && slow.decrementAndGet() == 0) {
                        request.awaitClose();
                    }
                    request.answer("blue");
                });
                EndpointClient client = hedging(server, 2_000)) {
            for (int call = 0; call < 50; call++) {
                client.send(QUESTION);
            }
            int before = server.requests.get();
            slow.set(1);
            assertEquals("blue", client.send(QUESTION).text());
            assertEquals(before + 2, server.requests.get());
            assertTrue(server.sawClose(), "the slow request is cancelled");
            slow.set(1);
            fails(Reason.DEADLINE, () -> client.send(
                    QUESTION.withSession("s").withDeadline(Duration.ofMillis(2_500))));
        }
    }

    @Test
    void aHedgeThatBreaksInItsBodyIsRepeatedWithoutTheSlowRequest() throws Exception {
        AtomicInteger step = new AtomicInteger(-100);
        try (HostileServer server = new HostileServer(request -> {
                    switch (step.incrementAndGet()) {
                        case 1 -> request.awaitClose();
                        case 2 -> {
                            request.send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{");
                            Thread.sleep(100);
                            request.reset();
                        }
                        default -> request.answer("blue");
                    }
                });
                EndpointClient client = hedging(server, 1_000)) {
            for (int call = 0; call < 50; call++) {
                client.send(QUESTION);
            }
            step.set(0);
            assertEquals("blue", client.send(QUESTION).text());
            assertEquals(3, step.get());
            assertTrue(server.sawClose());
        }
    }

    private static EndpointClient hedging(HostileServer server, int millis) {
        return EndpointClient.builder(server.uri())
                .model("m")
                .deadline(Duration.ofSeconds(20))
                .hedgeAfter(Duration.ofMillis(millis))
                .build();
    }

    @Test
    void atMostTwoPercentOfCallsAreHedged() throws Exception {
        int calls = 400;
        try (HostileServer server = new HostileServer(request -> {
                    Thread.sleep(20);
                    request.answer("blue");
                });
                EndpointClient client = hedging(server, 1)) {
            List<CompletableFuture<Answer>> answers = new ArrayList<>();
            for (int call = 0; call < calls; call++) {
                answers.add(client.sendAsync(QUESTION));
                if (answers.size() == 16) {
                    for (CompletableFuture<Answer> each : answers) {
                        each.get();
                    }
                    answers.clear();
                }
            }
            int hedges = server.requests.get() - calls;
            assertTrue(hedges >= 1 && hedges <= calls / 50, hedges + " hedges for " + calls + " calls");
        }
    }

    @Test
    void theDelayOfHedgesIsLearned() {
        Hedging hedging = new Hedging(null);
        assertEquals(Long.MAX_VALUE, hedging.delayNanos());
        for (int call = 1; call <= 1024; call++) {
            hedging.learn(call % 100 == 0 ? 1_000_000 : 1_000 + call % 100);
        }
        long delay = hedging.delayNanos();
        assertTrue(delay > 1_000 && delay < 1_000_000, "98 % of answers came earlier: " + delay);
        for (int call = 0; call < 100_000; call++) {
            hedging.delayNanos();
        }
        int taken = 0;
        while (hedging.take()) {
            taken++;
        }
        assertEquals(10, taken, "a quiet time saves only a few hedges");
    }

    @Test
    void aHedgeIsSentWhenTheFirstRequestWouldProbablyLose() {
        Hedging even = new Hedging(null);
        for (int call = 0; call < 1024; call++) {
            even.learn(50_000 + call % 50 * 100);
        }
        assertTrue(even.delayNanos() > 100_000, "all answers come between 50 and 55 µs: " + even.delayNanos());
        Hedging tail = new Hedging(null);
        for (int call = 0; call < 1024; call++) {
            tail.learn(call % 100 == 0 ? 1_000_000 : 50_000);
        }
        assertEquals(100_000, tail.delayNanos(), "one answer in a hundred takes 1 ms");
    }

    @Test
    void callsLeaveNoTimers() {
        Settings settings = new Settings(URI.create("http://127.0.0.1:9"));
        settings.model = "m";
        Transport transport = new Transport(settings);
        for (int call = 0; call < 200_000; call++) {
            transport.later(3_600_000_000_000L, () -> {}).cancel(false);
        }
        assertEquals(0, transport.timers(), "a cancelled timer goes at once");
        transport.close();
    }

    @Test
    void aCallHasOneTimerAtATimeAndEndsAtItsDeadline() throws Exception {
        try (HostileServer server = new HostileServer(HostileServer.Request::awaitClose)) {
            Settings settings = new Settings(server.uri());
            settings.model = "m";
            settings.hedgeAfter = Duration.ofMillis(100);
            settings.deadline = Duration.ofSeconds(1);
            Transport transport = new Transport(settings);
            CompletableFuture<Answer> slow = new Call(transport, QUESTION, null).start();
            assertEquals(1, transport.timers(), "the hedge comes before the deadline");
            ExecutionException failure = assertThrows(ExecutionException.class, () -> slow.get(20, TimeUnit.SECONDS));
            assertEquals(Reason.DEADLINE, ((EndpointException) failure.getCause()).reason());
            assertEquals(0, transport.timers());
            transport.close();
        }
    }

    @Test
    void aFailingEndpointIsLeftAloneAndTriedAgain() throws Exception {
        try (HostileServer server = new HostileServer(request -> request.answer(503, "", ""));
                EndpointClient client = client(server, builder -> builder
                        .maxAttempts(1)
                        .circuit(50, 5, Duration.ofMinutes(1), Duration.ofSeconds(1)))) {
            for (int call = 0; call < 5; call++) {
                fails(Reason.UNAVAILABLE, () -> client.send(QUESTION));
            }
            EndpointException failure = fails(Reason.CIRCUIT_OPEN, () -> client.send(QUESTION));
            assertFalse(failure.retryAfter().orElseThrow().isNegative());
            assertEquals(5, server.requests.get());
            nothingInFlight(client);
            server.behave(request -> request.answer("blue"));
            Thread.sleep(1_100);
            for (int call = 0; call < 10; call++) {
                assertEquals("blue", client.send(QUESTION).text());
            }
        }
    }

    @Test
    void callsThatWereCancelledDoNotKeepAHalfOpenCircuit() throws Exception {
        try (HostileServer server = new HostileServer(request -> request.answer(503, "", ""));
                EndpointClient client = client(server, builder -> builder
                        .maxAttempts(1)
                        .circuit(50, 5, Duration.ofMinutes(1), Duration.ofMillis(50)))) {
            for (int call = 0; call < 5; call++) {
                fails(Reason.UNAVAILABLE, () -> client.send(QUESTION));
            }
            server.behave(HostileServer.Request::awaitClose);
            for (int call = 0; call < 20; call++) {
                Thread.sleep(60);
                client.sendAsync(QUESTION).cancel(true);
            }
            server.behave(request -> request.answer("blue"));
            int answered = 0;
            for (int wait = 0; wait < 200 && answered < 10; wait++) {
                Thread.sleep(60);
                try {
                    answered += client.sendAsync(QUESTION).get().text().equals("blue") ? 1 : 0;
                } catch (ExecutionException open) {
                    assertEquals(Reason.CIRCUIT_OPEN, ((EndpointException) open.getCause()).reason());
                }
            }
            assertEquals(10, answered);
        }
    }

    @Test
    void theCallersMistakesDoNotOpenTheCircuit() throws Exception {
        try (HostileServer server = new HostileServer(request -> request.answer(400, "", ""));
                EndpointClient client = client(server, builder -> builder.circuit(
                        1, 2, Duration.ofMinutes(1), Duration.ofMinutes(1)))) {
            for (int call = 0; call < 20; call++) {
                fails(Reason.REFUSED, () -> client.send(QUESTION));
            }
            assertThrows(IllegalArgumentException.class, () -> EndpointClient.builder(server.uri()).maxInFlight(0));
        }
    }
}
