package inferenceblueprints.enrichment;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.metrics.Counter;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Keeps the open session of each key and emits its versions.
 *
 * <p>The first event after a version starts a timer; later ones do not delay it. A session is over when an event's time is
 * more than the gap after the newest one, or when no event came in for that long by this machine's clock, which also clears
 * the state. A version is a function of the session's events, so a replay after a failure gives the same versions however
 * the timer groups the events then.
 */
final class Sessions extends KeyedProcessFunction<String, Event, SessionPrompt> implements CheckpointedFunction {
    private static final long serialVersionUID = 1L;
    /** Versions of events with the same newest time. */
    private static final int VERSIONS_PER_MILLI = SessionPrompt.VERSIONS_PER_MILLI;

    /** How long a version waits for a place among the calls before it is held. */
    private static final long MOMENT_MILLIS = 50;
    /** Least pauses before a version that is held tries again. They grow by a millisecond for each one that is held. */
    private static final long HELD_MILLIS = 100;

    private static final long HELD_MILLIS_OF_AWAY = 2_000;

    private final String job;
    private final JobConfiguration configuration;
    private final JobConfiguration.Endpoint endpoint;
    private final ModelCalls requests;
    private final JobConfiguration.Session limits;
    private final JobConfiguration.Prompt prompt;
    private transient ValueState<SessionState> sessions;
    private transient ListState<Long> openCounts;
    private transient NewestVersions calls;
    private transient PromptText text;
    private transient Counter late;
    private transient Counter duplicates;
    private transient long open;
    private transient long held;
    /** Until when no version waits for a place, because one has waited in vain. */
    private transient long full;

    Sessions(JobConfiguration configuration) {
        job = configuration.name();
        this.configuration = configuration;
        endpoint = configuration.endpoint();
        requests = new ModelCalls(configuration);
        limits = configuration.session();
        prompt = configuration.prompt();
    }

    @Override
    public void initializeState(FunctionInitializationContext context) throws Exception {
        // The sum over all subtasks is the number of open sessions, also after parallelism changed.
        openCounts = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("open", Types.LONG));
        for (long count : openCounts.get()) {
            open += count;
        }
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) throws Exception {
        openCounts.update(List.of(open));
    }

    @Override
    public void open(OpenContext context) {
        sessions = getRuntimeContext()
                .getState(new ValueStateDescriptor<>("session", TypeInformation.of(SessionState.class)));
        calls = NewestVersions.open(configuration, getRuntimeContext().getTaskInfo());
        text = new PromptText(Templates.rendering(prompt), limits.maxEvents(), prompt.maxCharacters());
        JobMetrics metrics = new JobMetrics(getRuntimeContext().getMetricGroup());
        metrics.gauge("sessionsOpen", () -> open);
        late = metrics.counter("late");
        duplicates = metrics.counter("duplicates");
    }

    @Override
    public void close() {
        if (calls != null) {
            calls.close();
        }
    }

    @Override
    public void processElement(Event event, Context context, Collector<SessionPrompt> versions) throws Exception {
        SessionState state = sessions.value();
        if (state != null && event.time() > state.newest + limits.gapMillis()) {
            emit(state, context, versions);
            end(state, context);
            state = null;
        }
        if (state == null) {
            state = begin(event);
        } else if (event.time() < state.newest - limits.gapMillis()) {
            late.inc();
            reject(event, "late", "the event belongs to a session that is over", context);
            return;
        } else if (event.id() != null && state.kept.stream().anyMatch(each -> event.id().equals(each.id()))) {
            duplicates.inc();
            return;
        }
        accept(event, state);
        long now = context.timerService().currentProcessingTime();
        state.seen = now;
        if (state.check == 0) {
            state.check = now + limits.gapMillis();
            context.timerService().registerProcessingTimeTimer(state.check);
        }
        if (state.due != 0) {
            // A timer runs, and this event joins the others.
            sessions.update(state);
            return;
        }
        if (limits.debounceMillis() == 0) {
            leave(state, context, versions);
        } else {
            state.due = now + limits.debounceMillis();
            context.timerService().registerProcessingTimeTimer(state.due);
        }
        sessions.update(state);
    }

    private SessionState begin(Event event) {
        SessionState state = new SessionState();
        state.newest = event.time();
        state.session = Digests.sha256(job + "\n" + event.key() + "\n" + event.time()).substring(0, 32);
        open++;
        return state;
    }

    private void accept(Event event, SessionState state) {
        state.newest = Math.max(state.newest, event.time());
        state.accepted++;
        state.kept.add(event);
        state.waiting++;
        if (state.kept.size() > limits.maxEvents()) {
            state.kept.remove(0);
            state.waiting = Math.min(state.waiting, state.kept.size());
        }
    }

    @Override
    public void onTimer(long time, OnTimerContext context, Collector<SessionPrompt> versions) throws Exception {
        SessionState state = sessions.value();
        if (state == null) {
            return;
        }
        if (time == state.due) {
            leave(state, context, versions);
        }
        if (time == state.check) {
            long over = state.seen + limits.gapMillis();
            if (over <= time && leave(state, context, versions)) {
                end(state, context);
                return;
            }
            state.check = Math.max(over, state.due + 1);
            context.timerService().registerProcessingTimeTimer(state.check);
        }
        sessions.update(state);
    }

    /**
     * Emits the waiting events as a version if a call may begin. If not, they wait here: newer ones join them, checkpoints go
     * on, which an operator with too many calls would block, and the version that leaves at last is the newest. Returns false
     * if they wait.
     */
    private boolean leave(SessionState state, Context context, Collector<SessionPrompt> versions)
            throws InterruptedException {
        long began = context.timerService().currentProcessingTime();
        if (state.waiting == 0 || calls.awaitPlace(endpoint.maxInFlightPerSubtask(), began < full ? 0 : MOMENT_MILLIS)) {
            emit(state, context, versions);
            return true;
        }
        long now = context.timerService().currentProcessingTime();
        full = now + MOMENT_MILLIS;
        if (state.held == 0) {
            state.held = now;
            held++;
        }
        // Events that came late into a job that was stopped are old already: they too may wait.
        boolean tooOld = now >= Math.max(state.newest, state.held) + endpoint.patience();
        if (endpoint.patience() > 0 && tooOld) {
            emit(state, context, new Unanswered(context));
            return true;
        }
        context.timerService().deleteProcessingTimeTimer(state.due);
        state.due = now + held + (calls.isModelAway() ? HELD_MILLIS_OF_AWAY : HELD_MILLIS);
        context.timerService().registerProcessingTimeTimer(state.due);
        return false;
    }

    /** Turns versions into dead letters. */
    private final class Unanswered implements Collector<SessionPrompt> {
        private final Context context;

        Unanswered(Context context) {
            this.context = context;
        }

        @Override
        public void collect(SessionPrompt version) {
            String message = "the model answered too few calls for " + endpoint.patience() + " ms";
            long now = System.currentTimeMillis();
            context.output(EnrichmentJob.REJECTED, requests.rejected(version, "timeout", message, now, 0));
        }

        @Override
        public void close() {}
    }

    private void emit(SessionState state, Context context, Collector<SessionPrompt> versions) {
        if (state.due != 0) {
            context.timerService().deleteProcessingTimeTimer(state.due);
            state.due = 0;
        }
        if (state.held != 0) {
            state.held = 0;
            // Not those that were held before a restart.
            held = Math.max(0, held - 1);
        }
        if (state.waiting == 0) {
            return;
        }
        long version = Math.max(
                state.newest * VERSIONS_PER_MILLI + Math.min(state.accepted, VERSIONS_PER_MILLI - 1), state.version + 1);
        String key = context.getCurrentKey();
        boolean changed = text.append(key, state, (event, message) -> reject(event, "template", message, context));
        if (changed) {
            state.version = version;
            versions.collect(new SessionPrompt(key, state.session, version, state.text));
        }
    }

    private void end(SessionState state, Context context) {
        if (state.check != 0) {
            context.timerService().deleteProcessingTimeTimer(state.check);
        }
        sessions.clear();
        open--;
    }

    private static void reject(Event event, String reason, String message, Context context) {
        Rejected rejected = new Rejected(
                reason,
                message,
                System.currentTimeMillis(),
                0,
                event.key(),
                -1,
                event.body().getBytes(StandardCharsets.UTF_8),
                null,
                event.partition(),
                event.offset(),
                event.topic());
        context.output(EnrichmentJob.REJECTED, rejected);
    }
}
