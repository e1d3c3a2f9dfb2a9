package inferenceblueprints.endpoint;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** The listeners of one call. What they throw is logged and changes nothing. */
final class Observations {
    private static final System.Logger LOG = System.getLogger(EndpointClient.class.getName());
    private static final Observations NONE = new Observations(List.of());

    private final List<CallListener.Observation> each;

    private Observations(List<CallListener.Observation> each) {
        this.each = each;
    }

    static Observations begin(List<CallListener> listeners, CallListener.Start start) {
        if (listeners.isEmpty()) {
            return NONE;
        }
        List<CallListener.Observation> begun = new ArrayList<>(listeners.size());
        tell(listeners, listener -> begun.add(listener.begin(start)));
        return new Observations(begun);
    }

    static void fallback(List<CallListener> listeners, CallListener.Start start, EndpointException failure) {
        tell(listeners, listener -> listener.fallback(start, failure));
    }

    void attempt(int number, boolean hedge, BiConsumer<String, String> header) {
        tell(each, observation -> observation.attempt(number, hedge, header));
    }

    void end(CallListener.End end) {
        tell(each, observation -> observation.end(end));
    }

    private static <T> void tell(List<T> listeners, Consumer<T> what) {
        for (T listener : listeners) {
            try {
                what.accept(listener);
            } catch (RuntimeException error) {
                LOG.log(System.Logger.Level.WARNING, "a listener of calls failed", error);
            }
        }
    }
}
