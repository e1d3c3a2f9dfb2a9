package inferenceblueprints.enrichment;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import inferenceblueprints.endpoint.Answer;
import inferenceblueprints.endpoint.ModelRequest;
import inferenceblueprints.endpoint.Priority;
import inferenceblueprints.endpoint.Usage;
import java.io.Serializable;
import java.time.Duration;

/** Requests for versions, and what their answers and failures mean. */
final class ModelCalls implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final JsonMapper MAPPER =
            JsonMapper.builder().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS).build();

    private final JobConfiguration.Prompt prompt;
    private final JobConfiguration.Request request;
    /** What requests call the model. Records and dead letters have its own name. */
    private final String asked;

    ModelCalls(JobConfiguration configuration) {
        prompt = configuration.prompt();
        request = configuration.request();
        JobConfiguration.Door door = configuration.endpoint().door();
        asked = door == null ? request.model() : door.model();
    }

    ModelRequest request(SessionPrompt version, Duration deadline) {
        ModelRequest built = ModelRequest.chat(version.text())
                .withModel(asked)
                .withMaxTokens(request.maxTokens())
                .withSession(version.session())
                .withDeadline(deadline);
        if (prompt.system() != null) {
            built = built.withSystem(prompt.system());
        }
        if (request.priority() != null) {
            built = built.withPriority(Priority.BATCH);
        }
        return request.responseFormat() == null
                ? built
                : built.withField("response_format", read(request.responseFormat()));
    }

    /** Returns the whole request as JSON, so that a dead letter can be sent again. */
    String requestBody(SessionPrompt version) {
        ObjectNode body = MAPPER.createObjectNode().put("model", request.model());
        ArrayNode messages = body.putArray("messages");
        if (prompt.system() != null) {
            messages.addObject().put("role", "system").put("content", prompt.system());
        }
        messages.addObject().put("role", "user").put("content", version.text());
        body.put("max_tokens", request.maxTokens());
        if (request.responseFormat() != null) {
            body.set("response_format", read(request.responseFormat()));
        }
        return body.toString();
    }

    /** Returns the dead letter of a version. */
    Rejected rejected(SessionPrompt version, String reason, String message, long time, int attempts) {
        return new Rejected(
                reason, message, time, attempts, version.key(), version.version(), null, requestBody(version), -1, -1, null);
    }

    String promptHash(SessionPrompt version) {
        return Digests.sha256(requestBody(version));
    }

    /** Returns the result of an answer: a failure if the answer is empty, or not what was asked for. */
    Result answered(SessionPrompt version, Answer answer, int attempts, long millis) {
        String fault = fault(answer);
        Usage usage = answer.usage();
        return new Result(
                version,
                fault.isEmpty() ? Result.Outcome.ANSWERED : Result.Outcome.FAILED,
                fault.isEmpty() ? answer.text() : "",
                fault.isEmpty() ? "" : "answer",
                fault,
                attempts,
                System.currentTimeMillis(),
                millis,
                usage.promptTokens(),
                usage.cachedTokens(),
                usage.answerTokens());
    }

    private String fault(Answer answer) {
        if (answer.text().isBlank()) {
            return "the answer is empty";
        }
        if (request.responseFormat() == null) {
            return "";
        }
        if (answer.isCutOff()) {
            return "the answer is cut off after " + request.maxTokens() + " tokens";
        }
        try {
            MAPPER.readTree(answer.text());
            return "";
        } catch (JsonProcessingException error) {
            return "the answer is not JSON: " + EventReader.shorten(error.getOriginalMessage());
        }
    }

    static Result ended(
            SessionPrompt version, Result.Outcome outcome, String reason, String message, int attempts, long millis) {
        return new Result(
                version, outcome, "", reason, message, attempts, System.currentTimeMillis(), millis, 0, 0, 0);
    }

    private static JsonNode read(String json) {
        try {
            return MAPPER.readTree(json);
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }
}
