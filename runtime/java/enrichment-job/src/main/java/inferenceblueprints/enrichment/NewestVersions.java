package inferenceblueprints.enrichment;

import inferenceblueprints.endpoint.Answer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;

/**
 * The calls of a subtask by session. When a newer version begins, it supersedes the older ones that have not ended.
 *
 * <p>After a restore, Flink starts the calls that had not ended again, in any order. All of them begin before the first can
 * end, unless an answer is there at once, so the newest one still wins; if not, the store keeps the newest answer anyway.
 */
final class NewestVersions {
    /** A call with its attempts. */
    static final class Entry {
        final long began = System.nanoTime();
        private CompletableFuture<Answer> call;
        private int attempts;
        private boolean superseded;
    }

    private final Map<String, NavigableMap<Long, Entry>> sessions = new HashMap<>();
    private int size;

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
            if (versions.isEmpty()) {
                sessions.remove(key);
            }
        }
        return entry;
    }

    /** Cancels everything. */
    void close() {
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
