package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class PromptTextTest {
    private static final int MOST_CHARACTERS = 30;

    private final SessionState state = new SessionState();
    private final List<String> rejected = new ArrayList<>();
    private final PromptText text = new PromptText(PromptTextTest::render, 6, MOST_CHARACTERS);
    private int time;

    /** Refuses events named bad, and long texts as a template does. */
    private static String render(Map<String, Object> values) throws Rendering.Failure {
        String rendered = ((List<?>) values.get("events"))
                .stream().map(each -> (String) ((Map<?, ?>) each).get("n")).collect(Collectors.joining(","));
        if (rendered.contains("bad") || rendered.length() > MOST_CHARACTERS) {
            throw new Rendering.Failure("refused " + rendered);
        }
        return rendered;
    }

    private boolean append(String... names) {
        for (String name : names) {
            state.kept.add(new Event("k", time++, name, "{\"n\":\"" + name + "\"}", 0, 0, null));
            state.waiting++;
        }
        return text.append("k", state, (event, message) -> rejected.add(event.id() + ": " + message));
    }

    @Test
    void theNextMessageBeginsWithTheFormerOne() {
        assertTrue(append("a"));
        assertEquals("a", state.text);
        assertTrue(append("b", "c"));
        assertEquals("a\nb,c", state.text);
        assertEquals(3, state.inText);
        assertEquals(0, state.waiting);
    }

    @Test
    void newEventsAreInTheOrderOfTheirTime() {
        state.kept.add(new Event("k", 100, "late", "{\"n\":\"late\"}", 0, 0, null));
        state.waiting++;
        assertTrue(append("early"));
        assertEquals("early,late", state.text);
    }

    @Test
    void anEventThatCannotBeRenderedIsLeftOut() {
        assertTrue(append("a", "bad", "c"));
        assertEquals("a,c", state.text);
        assertEquals(List.of("bad: refused bad"), rejected);
        assertFalse(append("bad"));
        assertEquals("a,c", state.text);
        assertEquals(2, state.kept.size());
    }

    @Test
    void afterTheMostEventsTheMessageBeginsAnewWithTheNewestHalf() {
        append("a", "b", "c", "d", "e", "f");
        assertTrue(append("g"));
        assertEquals("e,f,g", state.text);
        assertEquals(3, state.inText);
        append("h");
        assertEquals("e,f,g\nh", state.text);
    }

    @Test
    void afterTheMostCharactersTheMessageBeginsAnewWithWhatFits() {
        append("a".repeat(14), "b".repeat(14));
        assertTrue(append("c".repeat(14)));
        assertEquals("c".repeat(14), state.text, "half of the three newest");
        assertEquals(List.of(), rejected);
        assertTrue(append("d".repeat(31), "e"));
        assertTrue(state.text.endsWith("e"), state.text);
        assertEquals(1, rejected.size());
    }
}
