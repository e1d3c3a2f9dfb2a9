package inferenceblueprints.endpoint;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * A question to a model: chat or plain completion. Requests do not change; each {@code with} method returns a new one.
 *
 * <pre>{@code
 * ModelRequest.chat("Is this query about shoes? red runners")
 *     .withSystem("Answer yes or no.")
 *     .withMaxTokens(4)
 *     .withDeadline(Duration.ofMillis(250))
 * }</pre>
 */
public final class ModelRequest {
    private static final int LONGEST_SESSION = 256;

    private final boolean chat;
    private final ObjectNode fields;
    private final String model;
    private final String session;
    private final Priority priority;
    private final Duration deadline;
    private final boolean repeatable;

    private ModelRequest(
            boolean chat,
            ObjectNode fields,
            String model,
            String session,
            Priority priority,
            Duration deadline,
            boolean repeatable) {
        this.chat = chat;
        this.fields = fields;
        this.model = model;
        this.session = session;
        this.priority = priority;
        this.deadline = deadline;
        this.repeatable = repeatable;
    }

    /**
     * Asks a chat model one question.
     *
     * @param question the user's message
     * @return the request
     */
    public static ModelRequest chat(String question) {
        return empty(true).withMessage("user", question);
    }

    /**
     * Starts a chat without messages. {@link #withMessage} adds them in order.
     *
     * @return the request
     */
    public static ModelRequest chat() {
        return empty(true);
    }

    /**
     * Lets a model continue a text.
     *
     * @param prompt the text
     * @return the request
     */
    public static ModelRequest completion(String prompt) {
        return empty(false).withField("prompt", Objects.requireNonNull(prompt, "prompt"));
    }

    private static ModelRequest empty(boolean chat) {
        ObjectNode fields = Json.MAPPER.createObjectNode();
        return new ModelRequest(chat, fields, null, null, Priority.INTERACTIVE, null, true);
    }

    /**
     * Adds a message at the end of a chat.
     *
     * @param role {@code system}, {@code user} or {@code assistant}
     * @param text the message
     * @return the new request
     * @throws IllegalStateException if this is not a chat
     */
    public ModelRequest withMessage(String role, String text) {
        return message(role, text, false);
    }

    /**
     * Puts a system message before the other messages of a chat.
     *
     * @param text the message
     * @return the new request
     * @throws IllegalStateException if this is not a chat
     */
    public ModelRequest withSystem(String text) {
        return message("system", text, true);
    }

    private ModelRequest message(String role, String text, boolean first) {
        if (!chat) {
            throw new IllegalStateException("a completion has no messages: use ModelRequest.chat");
        }
        Objects.requireNonNull(text, "text");
        ObjectNode changed = fields.deepCopy();
        ArrayNode messages = changed.withArray("/messages");
        ObjectNode message = Json.MAPPER.createObjectNode().put("role", role).put("content", text);
        messages.insert(first ? 0 : messages.size(), message);
        return new ModelRequest(chat, changed, model, session, priority, deadline, repeatable);
    }

    /**
     * Asks another model than the client's default.
     *
     * @param name name of the model, as the endpoint lists it
     * @return the new request
     */
    public ModelRequest withModel(String name) {
        return new ModelRequest(chat, fields, name, session, priority, deadline, repeatable);
    }

    /**
     * Limits the length of the answer.
     *
     * @param tokens most tokens of the answer
     * @return the new request
     */
    public ModelRequest withMaxTokens(int tokens) {
        return withField("max_tokens", tokens);
    }

    /**
     * Sets the randomness of the answer.
     *
     * @param temperature 0 always takes the likeliest token
     * @return the new request
     */
    public ModelRequest withTemperature(double temperature) {
        return withField("temperature", temperature);
    }

    /**
     * Sets any field of the request's JSON, such as {@code seed}, {@code stop} or one that only your engine has.
     *
     * @param name name of the field
     * @param value a value that Jackson can write as JSON
     * @return the new request
     */
    public ModelRequest withField(String name, Object value) {
        if (name.equals("stream") || name.equals("stream_options") || name.equals("model")) {
            throw new IllegalArgumentException(name + ": the client sets this field; use stream() or withModel()");
        }
        ObjectNode changed = fields.deepCopy();
        changed.set(name, Json.MAPPER.valueToTree(value));
        return new ModelRequest(chat, changed, model, session, priority, deadline, repeatable);
    }

    /**
     * Keeps the requests of a session on one worker, whose cache then has the beginning of the prompt. It has an effect
     * if the blueprint sets {@code sessionAffinitySeconds}. Requests of a session are not hedged.
     *
     * @param id identifier of the session, 1 to 256 visible ASCII characters; it may be logged, so it must name no person
     * @return the new request
     */
    public ModelRequest withSession(String id) {
        boolean visible = id.chars().allMatch(each -> each > ' ' && each < 127);
        if (id.isEmpty() || id.length() > LONGEST_SESSION || !visible) {
            throw new IllegalArgumentException(
                    "session: must have 1 to " + LONGEST_SESSION + " visible ASCII characters; got " + id.length()
                            + " characters" + (visible ? "" : ", some not visible ASCII"));
        }
        return new ModelRequest(chat, fields, model, id, priority, deadline, repeatable);
    }

    /**
     * Sets who goes first.
     *
     * @param chosen the priority; without this call, {@link Priority#INTERACTIVE}
     * @return the new request
     */
    public ModelRequest withPriority(Priority chosen) {
        return new ModelRequest(chat, fields, model, session, chosen, deadline, repeatable);
    }

    /**
     * Limits the whole call, with all attempts and the whole answer. Then the request is cancelled on the wire.
     *
     * @param limit the limit; without this call, the client's
     * @return the new request
     */
    public ModelRequest withDeadline(Duration limit) {
        Settings.requirePositive("deadline", limit);
        return new ModelRequest(chat, fields, model, session, priority, limit, repeatable);
    }

    /**
     * Sends the request at most once: no retry, no hedge. For requests whose repetition has an effect beyond its cost.
     *
     * @return the new request
     */
    public ModelRequest sentOnce() {
        return new ModelRequest(chat, fields, model, session, priority, deadline, false);
    }

    boolean isChat() {
        return chat;
    }

    String model(String byDefault) {
        String chosen = model == null ? byDefault : model;
        if (chosen == null) {
            throw new IllegalArgumentException("model: missing; set it with withModel() or for the whole client");
        }
        return chosen;
    }

    String session() {
        return session;
    }

    boolean isRepeatable() {
        return repeatable;
    }

    Duration deadline(Duration byDefault) {
        return deadline == null ? byDefault : deadline;
    }

    /** Returns the headers for the router; without a session and for interactive requests there are none. */
    Map<String, String> routing() {
        Map<String, String> headers = new LinkedHashMap<>();
        if (session != null) {
            headers.put(RequestHeaders.SESSION, session);
        }
        if (priority == Priority.BATCH) {
            headers.putAll(RequestHeaders.BATCH);
        }
        return headers;
    }

    byte[] body(String byDefault, boolean streamed) {
        ObjectNode whole = Json.MAPPER.createObjectNode().put("model", model(byDefault));
        whole.setAll(fields);
        if (streamed) {
            whole.put("stream", true).putObject("stream_options").put("include_usage", true);
        }
        try {
            return Json.MAPPER.writeValueAsBytes(whole);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException("the request cannot be written as JSON", error);
        }
    }
}
