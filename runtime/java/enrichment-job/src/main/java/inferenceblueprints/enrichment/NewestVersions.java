package inferenceblueprints.enrichment;

import inferenceblueprints.endpoint.Answer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.TaskInfo;

/**
 * The calls of a subtask by session. When a newer version begins, it supersedes the older ones that have not ended.
 *
 * <p>After a restore, Flink starts the calls that had not ended again, in any order. All of them begin before the first can
 * end, unless an answer is there at once, so the newest one still wins; if not, the store keeps the newest answer anyway.
 */
final class NewestVersions {
    /**
     * A call with its attempts. Its deadline and its number of attempts hold for one round. A call of a model that is away gets
     * another round.
     */
    static final class Entry {
        final long began = System.nanoTime();
        private long round = began;
        private CompletableFuture<Answer> call;
        private int attempts;
        private int attemptsBefore;
        private boolean superseded;
        private boolean waits;
        private boolean roundIsOver;
    }

    private static final Map<String, NewestVersions> OPEN = new HashMap<>();

    private final Map<String, NavigableMap<Long, Entry>> sessions = new HashMap<>();
    private String name;
    private int users;
    private int size;
    private int waiting;
    private long answered = System.nanoTime();

    /** Returns the calls of a subtask. The operators of a subtask share them, and the last one that closes them ends them. */
    static NewestVersions open(JobConfiguration job, TaskInfo task) {
        String name = job.name() + "/" + job.kafka().shard() + "/" + task.getIndexOfThisSubtask() + "/" + task.getAttemptNumber();
        synchronized (OPEN) {
            NewestVersions calls = OPEN.computeIfAbsent(name, each -> new NewestVersions());
            calls.name = name;
            calls.users++;
            return calls;
        }
    }

    /** Begins the next attempt of a version, and cancels older versions. */
    Entry begin(String key, long version) {
        List<CompletableFuture<Answer>> cancelled = new ArrayList<>();
        Entry entry;
        synchronized (this) {
            NavigableMap<Long, Entry> versions = sessions.computeIfAbsent(key, each -> new TreeMap<>());
            entry = versions.get(version);
            if (entry == null) {
                entry = new Entry();
                versions.put(version, entry);
                size++;
            }
            if (entry.roundIsOver) {
                entry.roundIsOver = false;
                entry.round = System.nanoTime();
                entry.attemptsBefore = entry.attempts;
            }
            entry.superseded |= versions.lastKey() > version;
            for (Entry older : versions.headMap(version).values()) {
                older.superseded = true;
                if (older.call != null) {
                    cancelled.add(older.call);
                }
            }
        }
        // Outside the lock, because it runs what waits for the call.
        cancelled.forEach(each -> each.cancel(true));
        return entry;
    }

    /** Remembers the call of an attempt, so that it can be cancelled. */
    void sent(Entry entry, CompletableFuture<Answer> call) {
        boolean late;
        synchronized (this) {
            entry.attempts++;
            entry.call = call;
            late = entry.superseded;
        }
        if (late) {
            call.cancel(true);
        }
    }

    /**
     * Waits until a call may begin, so that a subtask has at most so many, but no longer than a moment: calls that Flink repeats
     * need the thread that waits here. It does not wait if the model is away. Returns whether a call may begin.
     */
    synchronized boolean awaitPlace(int most, long millis) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        while (size >= most && waiting == 0) {
            long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
            if (left <= 0) {
                return false;
            }
            wait(left);
        }
        return size < most;
    }

    /** Gives a version another round, because the model is away. */
    synchronized void waitForModel(Entry entry) {
        entry.roundIsOver = true;
        if (!entry.waits) {
            entry.waits = true;
            waiting++;
            notifyAll();
        }
    }

    /** Tells whether versions wait for a model that is away. */
    synchronized boolean isModelAway() {
        return waiting > 0;
    }

    /** Notes that the model has answered. */
    synchronized void answered() {
        answered = System.nanoTime();
    }

    /** Tells whether the model has answered anybody since the round of a version began. */
    synchronized boolean hasAnsweredSince(Entry entry) {
        return answered - entry.round > 0;
    }

    /** Returns the nanoseconds since the round of a version began. */
    synchronized long nanosOfRound(Entry entry) {
        return System.nanoTime() - entry.round;
    }

    synchronized int attemptsOfRound(Entry entry) {
        return entry.attempts - entry.attemptsBefore;
    }

    synchronized boolean isSuperseded(Entry entry) {
        return entry.superseded;
    }

    synchronized int attempts(Entry entry) {
        return entry.attempts;
    }

    synchronized int size() {
        return size;
    }

    /** Forgets a version that has its result, and returns it; null if it had ended before. */
    synchronized Entry end(String key, long version) {
        NavigableMap<Long, Entry> versions = sessions.get(key);
        Entry entry = versions == null ? null : versions.remove(version);
        if (entry != null) {
            size--;
            waiting -= entry.waits ? 1 : 0;
            notifyAll();
            if (versions.isEmpty()) {
                sessions.remove(key);
            }
        }
        return entry;
    }

    /** Cancels everything, if no other operator uses it. */
    void close() {
        synchronized (OPEN) {
            users--;
            if (users > 0) {
                return;
            }
            OPEN.remove(name, this);
        }
        List<CompletableFuture<Answer>> calls = new ArrayList<>();
        synchronized (this) {
            sessions.values().forEach(versions -> versions.values().forEach(each -> {
                if (each.call != null) {
                    calls.add(each.call);
                }
            }));
        }
        calls.forEach(each -> each.cancel(true));
    }
}
