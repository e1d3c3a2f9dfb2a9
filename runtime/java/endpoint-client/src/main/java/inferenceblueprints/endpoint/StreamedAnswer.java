package inferenceblueprints.endpoint;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.function.Consumer;

/** Puts the answer together from the events of one stream. */
final class StreamedAnswer {
    private final boolean chat;
    private final Consumer<String> onText;
    private final StringBuilder text = new StringBuilder();
    private final EventParser parser;
    private JsonNode last = Json.MAPPER.createObjectNode();
    private String finish = "";
    private Usage usage = Usage.UNKNOWN;

    StreamedAnswer(boolean chat, int limit, Consumer<String> onText) {
        this.chat = chat;
        this.onText = onText;
        this.parser = new EventParser(limit, this::take);
    }

    EventBody body() {
        return new EventBody(parser);
    }

    private void take(String event) {
        JsonNode whole = AnswerReader.json(event.getBytes(StandardCharsets.UTF_8));
        if (whole.has("error")) {
            String detail = AnswerReader.detail(event.getBytes(StandardCharsets.UTF_8));
            String message = "the endpoint ended the stream: " + EndpointException.shorten(detail);
            throw EndpointException.of(EndpointException.Reason.UNAVAILABLE, message);
        }
        last = whole;
        if (whole.path("usage").isObject()) {
            usage = AnswerReader.usage(whole);
        }
        JsonNode choice = whole.path("choices").path(0);
        if (choice.path("finish_reason").isTextual()) {
            finish = choice.path("finish_reason").textValue();
        }
        JsonNode part = chat ? choice.path("delta").path("content") : choice.path("text");
        if (part.isTextual() && !part.textValue().isEmpty()) {
            text.append(part.textValue());
            onText.accept(part.textValue());
        }
    }

    /** Returns the answer once the stream has ended. */
    Answer answer() {
        if (!parser.isComplete()) {
            String message = "the stream ended before its end mark";
            throw EndpointException.of(EndpointException.Reason.CONNECTION, message);
        }
        return new Answer(text.toString(), finish, usage, last.path("model").asText(""), last);
    }
}
