package inferenceblueprints.prompts;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Prompts are those of Python: tests/runtime/templates/test_conformance.py reads the same files. */
class ConformanceTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Path CASES = Path.of(System.getProperty("checkout"), "tests", "runtime", "templates");
    private static final int MOST_CHARACTERS = 10_000;

    @TestFactory
    Stream<DynamicTest> rendersTheSamePrompt() throws IOException {
        JsonNode file = JSON.readTree(CASES.resolve("conformance.json").toFile());
        JsonNode trees = JSON.readTree(CASES.resolve("trees.json").toFile());
        List<DynamicTest> tests = new ArrayList<>();
        for (JsonNode each : file.get("cases")) {
            JsonNode tree = trees.get(each.get("template").asText());
            if (each.path("refused").asText().equals("template")) {
                tests.add(DynamicTest.dynamicTest("template " + each.get("template"), () -> assertTrue(tree == null)));
            } else {
                Map<String, Object> values = values(each.has("values") ? each.get("values") : file.get("values"));
                int most = each.path("mostCharacters").asInt(MOST_CHARACTERS);
                tests.add(DynamicTest.dynamicTest("template " + each.get("template"), () -> check(each, tree, values, most)));
            }
        }
        return tests.stream();
    }

    private static void check(JsonNode expected, JsonNode tree, Map<String, Object> values, int most) {
        PromptTemplate template = PromptTemplate.of(tree, most);
        if (expected.has("prompt")) {
            assertEquals(expected.get("prompt").asText(), template.render(values));
        } else {
            PromptTemplateException error = assertThrows(PromptTemplateException.class, () -> template.render(values));
            assertTrue(error.getMessage().startsWith("line "), error.getMessage());
        }
    }

    private static Map<String, Object> values(JsonNode values) {
        return JSON.convertValue(values, new TypeReference<>() {});
    }

    @Test
    void namesTheLineOfAnError() throws IOException {
        JsonNode trees = JSON.readTree(CASES.resolve("trees.json").toFile());
        PromptTemplate template = PromptTemplate.of(trees.get("one\ntwo {{ session }}\n{{ events[9].page }}"), MOST_CHARACTERS);
        PromptTemplateException error =
                assertThrows(PromptTemplateException.class, () -> template.render(Map.of("session", "s", "events", List.of())));
        assertEquals("line 3: the list has no element 9", error.getMessage());
    }

    @Test
    void refusesWhatIsNotATreeAndWhatIsNotAValue() throws IOException {
        JsonNode tree = JSON.readTree("{\"source\": \"\", \"body\": []}");
        assertThrows(PromptTemplateException.class, () -> PromptTemplate.of(JSON.readTree("\"{{ text }}\""), 10));
        assertThrows(PromptTemplateException.class, () -> PromptTemplate.of(
                JSON.readTree("{\"source\": \"\", \"body\": [{\"kind\": \"Macro\", \"line\": 1}]}"), 10));
        assertThrows(PromptTemplateException.class, () -> PromptTemplate.of(tree, 10).render(Map.of("a", new Object())));
        assertThrows(PromptTemplateException.class, () -> PromptTemplate.of(tree, 10).render(Map.of("a", Map.of(1, 2))));
        assertFalse(PromptTemplate.of(tree, 10).render(Map.of("a", 1L)).contains("a"));
    }
}
