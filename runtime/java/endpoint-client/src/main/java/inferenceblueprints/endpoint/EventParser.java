package inferenceblueprints.endpoint;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.function.Consumer;

/**
 * Splits bytes into server-sent events, as the HTML standard describes it (section 9.2.6, "Interpreting an event stream"):
 * lines end with CR, LF or both, a blank line ends an event, and a line that begins with a colon is a comment.
 */
final class EventParser {
    private static final String END = "[DONE]";

    private final ByteArrayOutputStream line = new ByteArrayOutputStream(512);
    private final Consumer<String> onEvent;
    private final int limit;
    private StringBuilder data;
    private long total;
    private boolean afterReturn;
    private boolean complete;

    /**
     * @param limit most bytes of the stream
     * @param onEvent gets the data of each event before the end mark
     */
    EventParser(int limit, Consumer<String> onEvent) {
        this.limit = limit;
        this.onEvent = onEvent;
    }

    /** Tells whether the end mark has come. */
    boolean isComplete() {
        return complete;
    }

    void accept(ByteBuffer bytes) throws AnswerBody.TooLongException {
        total += bytes.remaining();
        if (total > limit) {
            throw new AnswerBody.TooLongException(limit);
        }
        while (bytes.hasRemaining()) {
            byte each = bytes.get();
            if (each == '\n' && afterReturn) {
                afterReturn = false;
            } else if (each == '\n' || each == '\r') {
                afterReturn = each == '\r';
                String text = line.toString(StandardCharsets.UTF_8);
                line.reset();
                endLine(text);
            } else {
                afterReturn = false;
                line.write(each);
            }
        }
    }

    private void endLine(String text) {
        if (text.isEmpty()) {
            if (data != null && !complete) {
                String event = data.toString();
                data = null;
                onEvent.accept(event);
            }
        } else if (text.startsWith("data:")) {
            String value = text.substring(text.startsWith("data: ") ? 6 : 5);
            if (value.equals(END)) {
                // Some servers close right after this line, without the blank one.
                complete = true;
            }
            data = data == null ? new StringBuilder(value) : data.append('\n').append(value);
        }
    }
}
