package inferenceblueprints.endpoint;

import com.fasterxml.jackson.databind.node.ObjectNode;
import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.http.StreamResponse;
import com.openai.errors.OpenAIServiceException;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;

/**
 * Calls a front door with the official Java client, and prints what it got. tests/java starts it with the address, a model, a
 * key, a key whose budget is spent, and a token.
 */
final class OfficialDoorProbe {
    private OfficialDoorProbe() {}

    public static void main(String[] arguments) throws Exception {
        String address = arguments[0];
        String model = arguments[1];
        ObjectNode out = Json.MAPPER.createObjectNode();
        OpenAIClient client = client(address, arguments[2]);
        out.put("answer", text(client, question(model, 9)));
        StringBuilder parts = new StringBuilder();
        try (StreamResponse<ChatCompletionChunk> stream =
                client.chat().completions().createStreaming(question(model, 9))) {
            stream.stream()
                    .flatMap(each -> each.choices().stream())
                    .flatMap(each -> each.delta().content().stream())
                    .forEach(parts::append);
        }
        out.put("parts", parts.toString());
        out.put("withToken", text(client(address, arguments[4]), question(model, 9)));
        out.put("wrongKey", refusal(client(address, "ibk-" + "0".repeat(12) + "-" + "0".repeat(43)), question(model, 9)));
        out.put("unknownModel", refusal(client, question("nobody/knows", 9)));
        out.put("poor", refusal(client(address, arguments[3]), question(model, 1000)));
        System.out.println(Json.MAPPER.writeValueAsString(out));
        System.exit(0); // the client's threads live on
    }

    private static OpenAIClient client(String address, String key) {
        return OpenAIOkHttpClient.builder().baseUrl(address).apiKey(key).maxRetries(0).build();
    }

    private static ChatCompletionCreateParams question(String model, long tokens) {
        return ChatCompletionCreateParams.builder()
                .model(model)
                .addUserMessage("Count.")
                .maxCompletionTokens(tokens)
                .build();
    }

    private static String text(OpenAIClient client, ChatCompletionCreateParams question) {
        return client.chat().completions().create(question).choices().get(0).message().content().orElse("");
    }

    private static String refusal(OpenAIClient client, ChatCompletionCreateParams question) {
        try {
            return "answered: " + text(client, question);
        } catch (OpenAIServiceException error) {
            return error.getClass().getSimpleName() + " " + error.statusCode() + " " + error.code().orElse("");
        }
    }
}
