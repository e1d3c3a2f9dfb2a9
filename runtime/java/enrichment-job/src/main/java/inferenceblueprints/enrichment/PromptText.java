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
     * @param rejected gets each event that the template fails for, and why; the others are still rendered
     * @return whether the message has changed
     */
    boolean append(String key, SessionState state, BiConsumer<Event, Rendering.Failure> rejected) {
        List<Event> kept = state.kept;
        List<Event> waiting = new ArrayList<>(kept.subList(kept.size() - state.waiting, kept.size()));
        kept.subList(kept.size() - state.waiting, kept.size()).clear();
        state.waiting = 0;
        waiting.sort(Comparator.comparingLong(Event::time));
        List<Event> usable = new ArrayList<>();
        String added = renderUsable(key, waiting, usable, rejected);
        kept.addAll(usable);
        if (usable.isEmpty()) {
            return false;
        }
        String longer = state.text.isEmpty() ? added : state.text + "\n" + added;
        if (state.inText + usable.size() <= mostEvents && longer.length() <= mostCharacters) {
            state.text = longer;
            state.inText += usable.size();
            return true;
        }
        return restart(key, state, usable.size(), rejected);
    }

    private String renderUsable(
            String key, List<Event> waiting, List<Event> usable, BiConsumer<Event, Rendering.Failure> rejected) {
        try {
            String text = render(key, waiting);
            usable.addAll(waiting);
            return text;
        } catch (Rendering.Failure whole) {
            for (Event each : waiting) {
                try {
                    render(key, List.of(each));
                    usable.add(each);
                } catch (Rendering.Failure failure) {
                    rejected.accept(each, failure);
                }
            }
            try {
                return usable.isEmpty() ? "" : render(key, usable);
            } catch (Rendering.Failure failure) {
                usable.forEach(each -> rejected.accept(each, failure));
                usable.clear();
                return "";
            }
        }
    }

    /** Begins the message anew with the newest events that fit, and with the newest one at least. */
    private boolean restart(
            String key, SessionState state, int added, BiConsumer<Event, Rendering.Failure> rejected) {
        List<Event> kept = state.kept;
        int count = Math.min(kept.size(), Math.max(added, (mostEvents + 1) / 2));
        Rendering.Failure last = null;
        for (; count > 0; count /= 2) {
            try {
                List<Event> newest = new ArrayList<>(kept.subList(kept.size() - count, kept.size()));
                newest.sort(Comparator.comparingLong(Event::time));
                String text = render(key, newest);
                if (text.length() <= mostCharacters) {
                    state.text = text;
                    state.inText = count;
                    return true;
                }
                last = tooLong(text.length());
            } catch (Rendering.Failure failure) {
                last = failure;
            }
        }
        rejected.accept(kept.remove(kept.size() - 1), last);
        return false;
    }

    private Rendering.Failure tooLong(int length) {
        return new Rendering.Failure(
                "too_large", "the event's prompt has " + length + " characters; at most " + mostCharacters + " are allowed");
    }

    private String render(String key, List<Event> events) throws Rendering.Failure {
        List<Map<String, Object>> fields = new ArrayList<>();
        for (Event each : events) {
            try {
                fields.add(MAPPER.readValue(each.body(), FIELDS));
            } catch (JsonProcessingException error) {
                throw new Rendering.Failure("template", "an event cannot be read: " + error.getOriginalMessage());
            }
        }
        return rendering.render(Map.of("events", fields, "session", key));
    }
}
