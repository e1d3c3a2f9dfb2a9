package inferenceblueprints.endpoint;

import static inferenceblueprints.endpoint.Calls.client;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import inferenceblueprints.endpoint.EndpointException.Reason;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class StructureTest {
    enum Goal {
        BUY,
        BROWSE
    }

    record Item(String name, long count) {}

    @Described("what a shopper wants")
    record Intent(@Described("the goal") Goal goal, double confidence, boolean urgent, List<Item> items) {}

    record Loop(List<Loop> more) {}

    record Unclear(Object anything) {}

    record Keyed(Map<String, String> map) {}

    private static final Intent FALLBACK = new Intent(Goal.BROWSE, 0, false, List.of());
    private static final Structure<Intent> INTENT = Structure.of(Intent.class, FALLBACK);
    private static final ModelRequest QUESTION = ModelRequest.chat("red runners, size 9");

    @Test
    void theSchemaDescribesTheRecord() throws Exception {
        JsonNode schema = INTENT.schema();
        JsonNode expected = Json.MAPPER.readTree(
                """
                {"type": "object", "additionalProperties": false, "required": ["explanation", "value"],
                 "properties": {
                  "explanation": {"type": "string", "description": "why this value, in one short sentence"},
                  "value": {"type": "object", "additionalProperties": false, "description": "what a shopper wants",
                   "required": ["goal", "confidence", "urgent", "items"],
                   "properties": {
                    "goal": {"type": "string", "enum": ["BUY", "BROWSE"], "description": "the goal"},
                    "confidence": {"type": "number"}, "urgent": {"type": "boolean"},
                    "items": {"type": "array", "items": {"type": "object", "additionalProperties": false,
                     "required": ["name", "count"],
                     "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}}}}}}}
                """);
        assertEquals(expected, schema);
        assertEquals("explanation", schema.get("properties").fieldNames().next(), "the reason guides the value");
    }

    @Test
    void typesWithoutAClearSchemaAreRefused() {
        String unclear = message(Unclear.class, new Unclear(1));
        assertTrue(unclear.startsWith("Unclear.anything: got java.lang.Object, must be"), unclear);
        assertTrue(message(Keyed.class, new Keyed(Map.of())).startsWith("Keyed.map: got java.util.Map"));
        assertTrue(message(Loop.class, new Loop(List.of())).contains("contains itself"));
    }

    private static <T extends Record> String message(Class<T> type, T fallback) {
        return assertThrows(IllegalArgumentException.class, () -> Structure.of(type, fallback)).getMessage();
    }

    private static String quoted(String json) {
        return json.replace("\"", "\\\"");
    }

    @Test
    void aRecordIsFilledAndExplained() throws Exception {
        BlockingQueue<String> bodies = new LinkedBlockingQueue<>();
        String value = "{\"goal\":\"BUY\",\"confidence\":0.9,\"urgent\":true,\"items\":[{\"name\":\"shoe\",\"count\":2}]}";
        try (HostileServer server = new HostileServer(request -> {
                    bodies.add(request.body);
                    request.answer(quoted("{\"explanation\":\"names a size\",\"value\":" + value + "}"));
                });
                EndpointClient client = client(server)) {
            Decision<Intent> decision = client.decide(QUESTION, INTENT);
            assertEquals(new Intent(Goal.BUY, 0.9, true, List.of(new Item("shoe", 2))), decision.value());
            assertEquals("names a size", decision.explanation());
            assertFalse(decision.isFallback());
            assertEquals(Optional.empty(), decision.failure());
            JsonNode format = Json.MAPPER.readTree(bodies.take()).get("response_format");
            assertEquals("json_schema", format.get("type").textValue());
            assertEquals("Intent", format.at("/json_schema/name").textValue());
            assertTrue(format.at("/json_schema/strict").booleanValue());
            assertEquals(INTENT.schema(), format.at("/json_schema/schema"));
        }
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', value = {
        "no JSON at all",
        "{\"value\":{}}",
        "{\"explanation\":\"x\",\"value\":[]}",
        "{\"explanation\":\"x\",\"value\":{\"goal\":\"BUY\",\"confidence\":1,\"urgent\":true}}",
        "{\"explanation\":\"x\",\"value\":{\"goal\":\"EAT\",\"confidence\":1,\"urgent\":true,\"items\":[]}}",
        "{\"explanation\":\"x\",\"value\":{\"goal\":\"BUY\",\"confidence\":null,\"urgent\":true,\"items\":[]}}",
        "{\"explanation\":\"x\",\"value\":{\"goal\":\"BUY\",\"confidence\":1,\"urgent\":true,\"items\":[{\"name\":\"a\","
                + "\"count\":1.5}]}}",
        "{\"explanation\":\"x\",\"value\":{\"goal\":\"BUY\",\"confidence\":1,\"urgent\":true,\"items\":[],\"more\":1}}",
        "{\"explanation\":\"x\",\"value\":{\"goal\":\"BUY\",\"confidence\":1,\"urgent\":true,\"items\":[]}} and so on",
    })
    void aWrongStructureGivesTheFallback(String text) throws Exception {
        try (HostileServer server = new HostileServer(request -> request.answer(quoted(text)));
                EndpointClient client = client(server)) {
            Decision<Intent> decision = client.decide(QUESTION, INTENT);
            assertTrue(decision.isFallback());
            assertEquals(FALLBACK, decision.value());
            assertEquals("", decision.explanation());
            assertEquals(Reason.INVALID_ANSWER, decision.failure().orElseThrow().reason());
            assertEquals(text, decision.answer().orElseThrow().text());
        }
    }

    @Test
    void withoutAnExplanationTheAnswerIsTheRecord() throws Exception {
        Structure<Item> structure =
                Structure.of(Item.class, new Item("none", 0)).withoutExplanation();
        assertEquals(RecordSchema.of(Item.class), structure.schema());
        BlockingQueue<String> texts = new LinkedBlockingQueue<>(
                List.of("{\"name\":\"shoe\",\"count\":2}", "[]", "{\"explanation\":\"x\",\"value\":{}}"));
        try (HostileServer server = new HostileServer(request -> request.answer(quoted(texts.remove())));
                EndpointClient client = client(server)) {
            Decision<Item> decision = client.decide(QUESTION, structure);
            assertEquals(new Item("shoe", 2), decision.value());
            assertEquals("", decision.explanation());
            assertTrue(client.decide(QUESTION, structure).isFallback());
            assertTrue(client.decide(QUESTION, structure).isFallback());
        }
    }

    @Test
    void anAnswerThatWasCutOffNamesTheLimit() throws Exception {
        String cut = HostileServer.chat(quoted("{\"explanation\":\"x")).replace("\"stop\"", "\"length\"");
        try (HostileServer server = new HostileServer(request -> request.answer(200, "", cut));
                EndpointClient client = client(server)) {
            Decision<Intent> decision = client.decide(QUESTION, INTENT);
            assertTrue(decision.failure().orElseThrow().getMessage().contains("withMaxTokens"));
        }
    }

    @Test
    void aDeadlineGivesTheFallbackAndCancelsTheRequest() throws Exception {
        try (HostileServer server = new HostileServer(HostileServer.Request::awaitClose);
                EndpointClient client = client(server)) {
            Decision<Intent> decision = client.decide(QUESTION.withDeadline(Duration.ofMillis(1_500)), INTENT);
            assertEquals(Reason.DEADLINE, decision.failure().orElseThrow().reason());
            assertEquals(FALLBACK, decision.value());
            assertTrue(server.sawClose());
        }
        try (HostileServer server = new HostileServer(HostileServer.Request::awaitClose);
                EndpointClient client = client(server)) {
            var decided = client.decideAsync(QUESTION, INTENT);
            while (server.requests.get() == 0) {
                Thread.sleep(5);
            }
            decided.cancel(true);
            assertTrue(server.sawClose());
        }
    }
}
