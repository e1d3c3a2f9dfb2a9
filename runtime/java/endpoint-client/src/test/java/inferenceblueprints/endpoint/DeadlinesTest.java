package inferenceblueprints.endpoint;

import static inferenceblueprints.endpoint.Calls.QUESTION;
import static inferenceblueprints.endpoint.Calls.client;
import static inferenceblueprints.endpoint.Calls.fails;
import static inferenceblueprints.endpoint.Calls.nothingInFlight;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import inferenceblueprints.endpoint.EndpointException.Reason;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The server sees that the request ended: otherwise a model would go on generating for nobody. */
class DeadlinesTest {
    // Long enough that a request is sent on a machine with other work.
    private static final Duration SHORT = Duration.ofMillis(1_500);

    private static void drip(HostileServer.Request request, String head, String part) throws Exception {
        request.send(head);
        try {
            while (true) {
                request.send(part);
                Thread.sleep(20);
            }
        } catch (java.io.IOException closed) {
            request.awaitClose();
        }
    }

    static Stream<Named<HostileServer.Behaviour>> slownesses() {
        return Stream.of(
                Named.of("no answer at all", HostileServer.Request::awaitClose),
                Named.of("a body in drops", request ->
                        drip(request, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", "x")),
                Named.of("headers in drops", request -> drip(request, "HTTP/1.1 200 OK\r\n", "X-More: y\r\n")),
                Named.of("a header without end", request -> drip(request, "HTTP/1.1 200 OK\r\nX-More: ", "y")),
                Named.of("half an answer, then silence", request -> {
                    request.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"choices\"");
                    request.awaitClose();
                }));
    }

    @ParameterizedTest
    @MethodSource("slownesses")
    void theDeadlineClosesTheConnection(HostileServer.Behaviour slowness) throws Exception {
        try (HostileServer server = new HostileServer(slowness);
                EndpointClient client = client(server)) {
            long began = System.nanoTime();
            fails(Reason.DEADLINE, () -> client.send(QUESTION.withDeadline(SHORT)));
            assertTrue(System.nanoTime() - began >= SHORT.toNanos());
            assertTrue(server.sawClose());
            nothingInFlight(client);
            assertEquals(1, server.requests.get(), "a deadline is no reason to ask again");
        }
    }

    @Test
    void theDeadlineEndsAStream() throws Exception {
        try (HostileServer server = new HostileServer(request -> {
                    request.events();
                    request.part("blue");
                    request.awaitClose();
                });
                EndpointClient client = client(server)) {
            try (AnswerStream stream = client.stream(QUESTION.withDeadline(SHORT))) {
                var parts = stream.iterator();
                assertEquals("blue", parts.next());
                fails(Reason.DEADLINE, parts::hasNext);
                fails(Reason.DEADLINE, () -> stream.iterator().hasNext());
            }
            assertTrue(server.sawClose());
        }
    }

    @Test
    void aDeadlineEndsAStreamThatNobodyReads() throws Exception {
        try (HostileServer server = new HostileServer(request -> {
                    request.events();
                    while (true) {
                        request.part("blue");
                    }
                });
                EndpointClient client = client(server, builder -> builder.maxAnswerBytes(1 << 30))) {
            CompletableFuture<Answer> stream = client.streamAsync(QUESTION.withDeadline(SHORT), part -> {});
            assertThrows(ExecutionException.class, () -> stream.get(10, TimeUnit.SECONDS));
            for (int wait = 0; server.open.get() > 0 && wait < 500; wait++) {
                Thread.sleep(20);
            }
            assertEquals(0, server.open.get());
        }
    }

    static Stream<Named<java.util.function.Consumer<CompletableFuture<Answer>>>> endings() {
        return Stream.of(
                Named.of("cancel", call -> call.cancel(true)),
                Named.of("orTimeout", call -> call.orTimeout(1, TimeUnit.MILLISECONDS)));
    }

    @ParameterizedTest
    @MethodSource("endings")
    void whatTheCallerEndsIsCancelledOnTheWire(java.util.function.Consumer<CompletableFuture<Answer>> ending)
            throws Exception {
        try (HostileServer server = new HostileServer(HostileServer.Request::awaitClose);
                EndpointClient client = client(server)) {
            CompletableFuture<Answer> call = client.sendAsync(QUESTION);
            while (server.requests.get() == 0) {
                Thread.sleep(5);
            }
            ending.accept(call);
            assertTrue(server.sawClose());
            nothingInFlight(client);
        }
    }

    @Test
    void anInterruptedThreadAndAClosedStreamCancelToo() throws Exception {
        try (HostileServer server = new HostileServer(HostileServer.Request::awaitClose);
                EndpointClient client = client(server)) {
            Thread.currentThread().interrupt();
            fails(Reason.CANCELLED, () -> client.send(QUESTION));
            assertTrue(Thread.interrupted(), "the interruption is kept");
            nothingInFlight(client);
        }
        try (HostileServer server = new HostileServer(request -> {
                    request.events();
                    request.part("blue");
                    request.awaitClose();
                });
                EndpointClient client = client(server)) {
            try (AnswerStream stream = client.stream(QUESTION)) {
                stream.iterator().next();
            }
            assertTrue(server.sawClose());
        }
    }

    @Test
    void closingTheClientEndsItsCalls() throws Exception {
        try (HostileServer server = new HostileServer(HostileServer.Request::awaitClose)) {
            EndpointClient client = client(server);
            CompletableFuture<Answer> call = client.sendAsync(QUESTION);
            while (server.requests.get() == 0) {
                Thread.sleep(5);
            }
            client.close();
            Throwable error = assertThrows(ExecutionException.class, () -> call.get(5, TimeUnit.SECONDS));
            assertEquals(Reason.CLOSED, ((EndpointException) error.getCause()).reason());
            assertTrue(server.sawClose());
            fails(Reason.CLOSED, () -> client.send(QUESTION));
        }
    }
}
