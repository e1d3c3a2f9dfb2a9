package inferenceblueprints.prompts;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Renders each line {@code {"tree": …, "values": …, "mostCharacters": …}} of its input, for tests/java/test_prompt_template.py. */
final class Probe {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Probe() {}

    public static void main(String[] arguments) throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
        output.flush();
    }

    private static Map<String, String> answer(JsonNode question) {
        Map<String, Object> values = JSON.convertValue(question.get("values"), new TypeReference<>() {});
        try {
            return Map.of("prompt", PromptTemplate.of(question.get("tree"), question.get("mostCharacters").asInt()).render(values));
        } catch (PromptTemplateException error) {
            return Map.of("refused", error.getMessage());
        }
    }
}
