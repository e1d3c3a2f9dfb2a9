package inferenceblueprints.endpoint;

import static inferenceblueprints.endpoint.Calls.QUESTION;
import static inferenceblueprints.endpoint.Calls.client;
import static inferenceblueprints.endpoint.Calls.nothingInFlight;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;

class AnswersTest {
    private final BlockingQueue<HostileServer.Request> seen = new LinkedBlockingQueue<>();

    private void answer(HostileServer.Request request) throws Exception {
        seen.add(request);
        request.answer("blue");
    }

    @Test
    void aChatIsSentAndItsAnswerRead() throws Exception {
        try (HostileServer server = new HostileServer(this::answer);
                EndpointClient client = client(server)) {
            Answer answer = client.send(QUESTION.withSystem("Be brief.").withTemperature(0).withField("seed", 7));
            assertEquals("blue", answer.text());
            assertEquals("stop", answer.finishReason());
            assertEquals(new Usage(7, 4, 2), answer.usage());
            assertFalse(answer.isCutOff());
            HostileServer.Request request = seen.take();
            assertEquals("/v1/chat/completions", request.path);
            JsonNode body = Json.MAPPER.readTree(request.body);
            assertEquals(
                    Json.MAPPER.readTree("{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},"
                            + "{\"role\":\"user\",\"content\":\"Name a colour.\"}],\"max_tokens\":8,\"temperature\":0.0,"
                            + "\"seed\":7}"),
                    body);
            assertNull(request.headers.get("upgrade"), "an upgrade to HTTP/2 makes some servers answer 400");
            UUID.fromString(request.headers.get("x-request-id"));
        }
    }

    @Test
    void aCompletionIsSentAndItsAnswerRead() throws Exception {
        try (HostileServer server = new HostileServer(request -> {
                    seen.add(request);
                    request.answer(200, "", "{\"choices\":[{\"text\":\" sky\",\"finish_reason\":\"length\"}]}");
                });
                EndpointClient client = client(server)) {
            Answer answer = client.send(ModelRequest.completion("The blue").withModel("other"));
            assertEquals(" sky", answer.text());
            assertTrue(answer.isCutOff());
            assertEquals(Usage.UNKNOWN, answer.usage());
            HostileServer.Request request = seen.take();
            assertEquals("/v1/completions", request.path);
            assertEquals(Json.MAPPER.readTree("{\"model\":\"other\",\"prompt\":\"The blue\"}"),
                    Json.MAPPER.readTree(request.body));
        }
    }

    @Test
    void theRouterGetsTheHeadersOfTheSharedFile() throws Exception {
        JsonNode shared = Json.MAPPER.readTree(Files.readString(Path.of(System.getProperty("checkout"))
                .resolve("contracts/inference_contracts/request_headers.json")));
        try (HostileServer server = new HostileServer(this::answer);
                EndpointClient client = client(
                        server, builder -> builder.authentication(Authentication.bearer(() -> "token")))) {
            client.send(QUESTION.withSession("s-1").withPriority(Priority.BATCH));
            client.send(QUESTION);
            HostileServer.Request batch = seen.take();
            assertEquals("s-1", batch.headers.get(shared.get("session").textValue()));
            assertEquals("-1", batch.headers.get(shared.get("priority").textValue()));
            assertEquals("batch", batch.headers.get(shared.get("policyClass").textValue()));
            assertEquals("Bearer token", batch.headers.get("authorization"));
            HostileServer.Request interactive = seen.take();
            assertTrue(interactive.headers.keySet().stream().noneMatch(name -> name.startsWith("x-dynamo")));
        }
    }

    @Test
    void aStreamComesInPartsAndEndsWithTheWholeAnswer() throws Exception {
        try (HostileServer server = new HostileServer(request -> {
                    seen.add(request);
                    request.events();
                    request.chunk(": keep-alive\n\n");
                    request.part("bl");
                    request.part("ü€😀");
                    request.chunk("data: {\"model\":\"m\",\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\r\n\r\n");
                    request.chunk("data: {\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,"
                            + "\"completion_tokens\":2}}\n\n");
                    request.end();
                });
                EndpointClient client = client(server)) {
            List<String> parts = new ArrayList<>();
            try (AnswerStream stream = client.stream(QUESTION)) {
                stream.forEach(parts::add);
                Answer answer = stream.answer().orElseThrow();
                assertEquals("blü€😀", answer.text());
                assertEquals("stop", answer.finishReason());
                assertEquals(new Usage(3, 0, 2), answer.usage());
            }
            assertEquals(List.of("bl", "ü€😀"), parts);
            JsonNode body = Json.MAPPER.readTree(seen.take().body);
            assertTrue(body.get("stream").booleanValue());
            assertTrue(body.at("/stream_options/include_usage").booleanValue());
            assertEquals("blü€😀", client.streamAsync(QUESTION, part -> {}).get().text());
            assertEquals(1, server.accepted.get(), "the connection is used again");
        }
    }

    @Test
    void wrongRequestsAreRefusedBeforeTheyAreSent() throws Exception {
        assertThrows(IllegalArgumentException.class, () -> QUESTION.withField("stream", true));
        assertThrows(IllegalArgumentException.class, () -> QUESTION.withSession("a b"));
        assertThrows(IllegalStateException.class, () -> ModelRequest.completion("x").withSystem("y"));
        assertThrows(IllegalArgumentException.class, () -> QUESTION.withDeadline(java.time.Duration.ZERO));
        assertThrows(IllegalArgumentException.class, () -> EndpointClient.builder(java.net.URI.create("models:80")));
        try (HostileServer server = new HostileServer(this::answer);
                EndpointClient client = EndpointClient.builder(server.uri()).build()) {
            assertThrows(IllegalArgumentException.class, () -> client.send(QUESTION));
            nothingInFlight(client);
        }
    }

    @Test
    void blockingOnAThreadOfTheClientIsRefused() throws Exception {
        try (HostileServer server = new HostileServer(this::answer);
                EndpointClient client = client(server)) {
            Throwable error = client.sendAsync(QUESTION)
                    .thenApply(first -> client.send(QUESTION))
                    .handle((answer, wrong) -> wrong == null ? null : wrong.getCause())
                    .get();
            // The future may have been done before thenApply, which then ran on this thread.
            assertTrue(error == null || error instanceof IllegalStateException, String.valueOf(error));
        }
    }
}
