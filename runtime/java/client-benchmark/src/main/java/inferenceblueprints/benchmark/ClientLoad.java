package inferenceblueprints.benchmark;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.util.Locale;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Loads an endpoint through a client, and prints latencies and processor time per request as JSON:
 * {@code ClientLoad CLIENT open|closed RATE_OR_CALLERS URL WARM_SECONDS SECONDS}.
 *
 * <p>In the open loop, a request is due at a fixed rate and its latency counts from then, so that a client that falls behind does not
 * hide it. In the closed loop, each caller sends a request when the former one is answered.
 */
public final class ClientLoad {
    private static final long SECOND = 1_000_000_000L;

    private final Caller caller;
    private final ConcurrentLinkedQueue<Long> latencies = new ConcurrentLinkedQueue<>();
    private final AtomicInteger failures = new AtomicInteger();
    private volatile String failure = "";
    private volatile long measuredFrom = Long.MAX_VALUE;
    private volatile long end;

    private ClientLoad(Caller caller) {
        this.caller = caller;
    }

    /**
     * Runs the load.
     *
     * @param arguments see the class
     * @throws InterruptedException if the program is to end
     */
    public static void main(String[] arguments) throws InterruptedException {
        ClientLoad load = new ClientLoad(Caller.of(arguments[0], URI.create(arguments[3])));
        int amount = Integer.parseInt(arguments[2]);
        long warm = Integer.parseInt(arguments[4]) * SECOND;
        long measured = Integer.parseInt(arguments[5]) * SECOND;
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long begin = System.nanoTime();
        load.end = begin + warm + measured;
        Thread sender = new Thread(() -> {
            if (arguments[1].equals("open")) {
                load.open(begin, SECOND / amount);
            } else {
                load.closed(amount);
            }
        });
        sender.start();
        sleepUntil(begin + warm);
        load.measuredFrom = System.nanoTime();
        long before = system.getProcessCpuTime();
        sleepUntil(load.end);
        long used = system.getProcessCpuTime() - before;
        long[] taken = load.latencies.stream().mapToLong(Long::longValue).sorted().toArray();
        System.out.printf(
                Locale.ROOT,
                "{\"requests\":%d,\"failures\":%d,\"failure\":\"%s\",\"p50Ms\":%.3f,\"p99Ms\":%.3f,\"cpuMicros\":%.1f}%n",
                taken.length,
                load.failures.get(),
                load.failure.replaceAll("[^ -~]|[\"\\\\]", " "),
                quantile(taken, 0.5) / 1e6,
                quantile(taken, 0.99) / 1e6,
                used / 1e3 / Math.max(1, taken.length));
        System.exit(0);
    }

    private static double quantile(long[] sorted, double share) {
        return sorted.length == 0 ? Double.NaN : sorted[(int) Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
    }

    private static void sleepUntil(long time) throws InterruptedException {
        for (long left = time - System.nanoTime(); left > 0; left = time - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    private void open(long begin, long every) {
        for (long due = begin; due < end; due += every) {
            for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
            send(due, () -> {});
        }
    }

    private void closed(int callers) {
        for (int each = 0; each < callers; each++) {
            next();
        }
    }

    private void next() {
        if (System.nanoTime() < end) {
            send(System.nanoTime(), this::next);
        }
    }

    private void send(long since, Runnable after) {
        caller.call().whenComplete((text, error) -> {
            long now = System.nanoTime();
            boolean measured = since >= measuredFrom && now < end;
            if (measured && (error != null || text == null || text.isEmpty())) {
                failures.incrementAndGet();
                failure = String.valueOf(error);
            } else if (measured) {
                latencies.add(now - since);
            }
            after.run();
        });
    }

}
