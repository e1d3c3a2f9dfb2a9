package inferenceblueprints.enrichment;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;

/**
 * Writes the user's message of a session's next version.
 *
 * <p>The message begins with that of the former version, and the new events follow on a new line: the engine finds the
 * beginning in its prefix cache. It stays one message, because chat templates of some models demand that user and assistant
 * alternate. When the session has more events or characters than allowed, the message begins anew with its newest events.
 */
final class PromptText {
    private static final JsonMapper MAPPER = JsonMapper.builder().build();
    private static final TypeReference<Map<String, Object>> FIELDS = new TypeReference<>() {};

    private final Rendering rendering;
    private final int mostEvents;
    private final int mostCharacters;

    PromptText(Rendering rendering, int mostEvents, int mostCharacters) {
        this.rendering = rendering;
        this.mostEvents = mostEvents;
        this.mostCharacters = mostCharacters;
    }

    /**
     * Puts the waiting events into the message.
     *
     * @param rejected gets each event that cannot be rendered even alone, and why; the others are still rendered
     * @return whether the message has changed
     */
    boolean append(String key, SessionState state, BiConsumer<Event, String> rejected) {
        List<Event> tail = state.kept.subList(state.kept.size() - state.waiting, state.kept.size());
        List<Event> waiting = new ArrayList<>(tail);
        tail.clear();
        state.waiting = 0;
        waiting.sort(Comparator.comparingLong(Event::time));
        String added = renderOrNull(key, waiting);
        if (added == null) {
            waiting.removeIf(each -> isRejected(key, each, rejected));
            added = renderOrNull(key, waiting);
        }
        if (waiting.isEmpty()) {
            return false;
        }
        state.kept.addAll(waiting);
        String longer = state.text.isEmpty() ? added : state.text + "\n" + added;
        if (added != null && state.inText + waiting.size() <= mostEvents && fits(longer)) {
            state.text = longer;
            state.inText += waiting.size();
        } else {
            restart(key, state, waiting.size());
        }
        return true;
    }

    /** Begins the message anew with the newest events that fit. The newest one alone does. */
    private void restart(String key, SessionState state, int added) {
        int count = Math.min(state.kept.size(), Math.max(added, (mostEvents + 1) / 2));
        for (; count > 0; count /= 2) {
            List<Event> newest =
                    new ArrayList<>(state.kept.subList(state.kept.size() - count, state.kept.size()));
            newest.sort(Comparator.comparingLong(Event::time));
            String text = renderOrNull(key, newest);
            if (text != null) {
                state.text = text;
                state.inText = count;
                return;
            }
        }
    }

    private boolean fits(String text) {
        return text.codePointCount(0, text.length()) <= mostCharacters;
    }

    private boolean isRejected(String key, Event event, BiConsumer<Event, String> rejected) {
        try {
            render(key, List.of(event));
            return false;
        } catch (Rendering.Failure failure) {
            rejected.accept(event, failure.getMessage());
            return true;
        }
    }

    private String renderOrNull(String key, List<Event> events) {
        try {
            return render(key, events);
        } catch (Rendering.Failure failure) {
            return null;
        }
    }

    private String render(String key, List<Event> events) throws Rendering.Failure {
        List<Map<String, Object>> fields = new ArrayList<>();
        for (Event each : events) {
            try {
                fields.add(MAPPER.readValue(each.body(), FIELDS));
            } catch (JsonProcessingException error) {
                throw new Rendering.Failure("an event cannot be read: " + error.getOriginalMessage());
            }
        }
        return rendering.render(Map.of("events", fields, "session", key));
    }
}
