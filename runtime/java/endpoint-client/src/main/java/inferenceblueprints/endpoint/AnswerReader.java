package inferenceblueprints.endpoint;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** Makes answers and error messages of what the endpoint sends. */
final class AnswerReader {
    private AnswerReader() {}

    /** Reads a complete body. */
    static Answer answer(byte[] body, boolean chat) {
        JsonNode whole = json(body);
        JsonNode choice = whole.path("choices").path(0);
        JsonNode text = chat ? choice.path("message").path("content") : choice.path("text");
        boolean toolsOnly = chat && choice.path("message").path("tool_calls").isArray();
        if (!text.isTextual() && !toolsOnly) {
            throw invalid("no text in choices[0]: " + new String(body, StandardCharsets.UTF_8), null);
        }
        return new Answer(text.asText(""), finish(choice), usage(whole), whole.path("model").asText(""), whole);
    }

    static JsonNode json(byte[] body) {
        try {
            JsonNode whole = Json.MAPPER.readTree(body);
            if (!whole.isObject()) {
                throw invalid("no JSON object: " + new String(body, StandardCharsets.UTF_8), null);
            }
            return whole;
        } catch (IOException error) {
            throw invalid("no JSON: " + new String(body, StandardCharsets.UTF_8), error);
        }
    }

    static String finish(JsonNode choice) {
        return choice.path("finish_reason").asText("").replace("null", "");
    }

    static Usage usage(JsonNode whole) {
        JsonNode usage = whole.path("usage");
        if (!usage.isObject()) {
            return Usage.UNKNOWN;
        }
        return new Usage(
                usage.path("prompt_tokens").asInt(),
                usage.path("prompt_tokens_details").path("cached_tokens").asInt(),
                usage.path("completion_tokens").asInt());
    }

    /** Finds the message in a refusal: OpenAI's form, the short form of others, or plain text. */
    static String detail(byte[] body) {
        String text = new String(body, StandardCharsets.UTF_8);
        try {
            JsonNode whole = Json.MAPPER.readTree(body);
            JsonNode error = whole.path("error");
            for (JsonNode each : new JsonNode[] {error.path("message"), error, whole.path("message")}) {
                if (each.isTextual()) {
                    return each.textValue();
                }
            }
        } catch (IOException plain) {
            return text;
        }
        return text;
    }

    /** Finds the code in a refusal of OpenAI's form; empty without one. */
    static String code(byte[] body) {
        try {
            return Json.MAPPER.readTree(body).path("error").path("code").asText("").replace("null", "");
        } catch (IOException plain) {
            return "";
        }
    }

    static EndpointException invalid(String message, Throwable cause) {
        String shortened = EndpointException.shorten(message);
        return EndpointException.of(EndpointException.Reason.INVALID_ANSWER, shortened, cause);
    }
}
