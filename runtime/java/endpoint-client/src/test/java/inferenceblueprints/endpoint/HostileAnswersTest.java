package inferenceblueprints.endpoint;

import static inferenceblueprints.endpoint.Calls.QUESTION;
import static inferenceblueprints.endpoint.Calls.client;
import static inferenceblueprints.endpoint.Calls.fails;
import static inferenceblueprints.endpoint.Calls.nothingInFlight;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import inferenceblueprints.endpoint.EndpointException.Reason;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class HostileAnswersTest {
    private static Arguments each(Reason reason, String words, HostileServer.Behaviour behaviour) {
        return Arguments.of(reason, words, behaviour);
    }

    static Stream<Arguments> answers() {
        return Stream.of(
                each(Reason.CONNECTION, "bytes", request -> {
                    request.send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"choices\":[");
                    request.socket.close();
                }),
                each(Reason.CONNECTION, "", request -> {
                    request.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{\"choices");
                    request.socket.close();
                }),
                each(Reason.CONNECTION, "", HostileServer.Request::reset),
                each(Reason.CONNECTION, "", request -> request.socket.close()),
                each(Reason.CONNECTION, "", request -> {
                    request.send("SSH-2.0-OpenSSH_9.2\r\n\r\n");
                    request.socket.close();
                }),
                each(Reason.CONNECTION, "Header size too big", request -> {
                    request.send("HTTP/1.1 200 OK\r\n");
                    while (true) {
                        request.send("X-More: " + "y".repeat(8_000) + "\r\n");
                    }
                }),
                each(Reason.INVALID_ANSWER, "no JSON", request -> request.answer(200, "", "<html>busy</html>")),
                each(Reason.INVALID_ANSWER, "no JSON", request -> request.answer(200, "", "")),
                each(Reason.INVALID_ANSWER, "no JSON object", request -> request.answer(200, "", "[1]")),
                each(Reason.INVALID_ANSWER, "choices[0]", request -> request.answer(200, "", "{\"choices\":[]}")),
                each(Reason.INVALID_ANSWER, "no JSON", request ->
                        request.answer(200, "", "[".repeat(100_000))),
                each(Reason.INVALID_ANSWER, "maxAnswerBytes", request -> {
                    request.send("HTTP/1.1 200 OK\r\n\r\n");
                    while (true) {
                        request.send("x".repeat(8_000));
                    }
                }),
                each(Reason.REFUSED, "answered 400: no such field", request -> request.answer(
                        400, "", "{\"error\":{\"message\":\"no such field\"}}")),
                each(Reason.REFUSED, "answered 401: sign in", request -> request.answer(
                        401, "", "{\"message\":\"sign in\"}")),
                each(Reason.REFUSED, "answered 500: boom", request -> request.answer(500, "", "boom")),
                each(Reason.REFUSED, "answered 302", request -> request.answer(
                        302, "Location: http://127.0.0.1:1/\r\n", "")),
                each(Reason.UNAVAILABLE, "answered 503", request -> {
                    request.send("HTTP/1.1 503 X\r\n\r\n");
                    while (true) {
                        request.send("x".repeat(8_000));
                    }
                }));
    }

    @ParameterizedTest
    @MethodSource("answers")
    void aBadAnswerHasAClearReason(Reason reason, String words, HostileServer.Behaviour behaviour) throws Exception {
        try (HostileServer server = new HostileServer(behaviour);
                EndpointClient client = client(server, builder -> builder.maxAttempts(1).maxAnswerBytes(100_000))) {
            EndpointException failure = fails(reason, () -> client.send(QUESTION));
            assertTrue(failure.getMessage().contains(words), failure.getMessage());
            assertTrue(failure.getMessage().length() < 700, "a message stays readable");
            nothingInFlight(client);
            boolean passing = reason == Reason.CONNECTION || reason == Reason.UNAVAILABLE;
            assertEquals(passing, failure.isTransient());
            server.behave(request -> request.answer("blue"));
            assertEquals("blue", client.send(QUESTION).text(), "the client goes on");
        }
    }

    static Stream<Arguments> streams() {
        return Stream.of(
                each(Reason.CONNECTION, "end mark", request -> {
                    request.events();
                    request.part("bl");
                    request.chunk("");
                }),
                each(Reason.CONNECTION, "", request -> {
                    request.events();
                    request.part("bl");
                    request.reset();
                }),
                each(Reason.UNAVAILABLE, "worker lost", request -> {
                    request.events();
                    request.part("bl");
                    request.chunk("data: {\"error\":{\"message\":\"worker lost\",\"code\":500}}\n\n");
                    request.end();
                }),
                each(Reason.INVALID_ANSWER, "no JSON", request -> {
                    request.events();
                    request.part("bl");
                    request.chunk("data: {\"choices\":\n\n");
                    request.end();
                }),
                each(Reason.INVALID_ANSWER, "maxAnswerBytes", request -> {
                    request.events();
                    request.part("bl");
                    while (true) {
                        request.chunk("data: " + "x".repeat(8_000));
                    }
                }));
    }

    @ParameterizedTest
    @MethodSource("streams")
    void aBrokenStreamIsNotRepeatedAfterItsFirstPart(Reason reason, String words, HostileServer.Behaviour behaviour)
            throws Exception {
        try (HostileServer server = new HostileServer(behaviour);
                EndpointClient client = client(server, builder -> builder.maxAnswerBytes(100_000))) {
            List<String> parts = new ArrayList<>();
            EndpointException failure = fails(reason, () -> {
                try (AnswerStream stream = client.stream(QUESTION)) {
                    stream.forEach(parts::add);
                }
            });
            assertTrue(failure.getMessage().contains(words), failure.getMessage());
            assertEquals(List.of("bl"), parts);
            assertEquals(1, server.requests.get());
        }
    }

    @Test
    void aStreamThatBreaksBeforeItsFirstPartIsRepeated() throws Exception {
        try (HostileServer server = new HostileServer(request -> {
                    request.events();
                    if (request.number == 1) {
                        request.reset();
                    }
                    request.part("blue");
                    request.end();
                });
                EndpointClient client = client(server)) {
            assertEquals("blue", client.streamAsync(QUESTION, part -> {}).get().text());
            assertEquals(2, server.requests.get());
        }
    }

    @Test
    void anEndpointWithoutStreamsIsNamed() throws Exception {
        try (HostileServer server = new HostileServer(request -> request.answer("blue"));
                EndpointClient client = client(server)) {
            EndpointException failure = fails(Reason.INVALID_ANSWER, () -> {
                try (AnswerStream stream = client.stream(QUESTION)) {
                    assertFalse(stream.iterator().hasNext());
                }
            });
            assertTrue(failure.getMessage().contains("application/json"), failure.getMessage());
        }
    }

    @Test
    void aCallbackThatFailsEndsItsStreamOnly() throws Exception {
        try (HostileServer server = new HostileServer(request -> {
                    request.events();
                    request.part("blue");
                    request.awaitClose();
                });
                EndpointClient client = client(server)) {
            var call = client.streamAsync(QUESTION, part -> {
                throw new IllegalStateException("mine");
            });
            Throwable error = org.junit.jupiter.api.Assertions.assertThrows(
                    java.util.concurrent.ExecutionException.class, call::get);
            assertTrue(error.getCause().getMessage().contains("mine"), error.getCause().getMessage());
            assertTrue(server.sawClose());
        }
    }
}
