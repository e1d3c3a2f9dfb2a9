package inferenceblueprints.enrichment;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import inferenceblueprints.endpoint.Authentication;
import java.net.URI;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The key with which a job calls the front door. A secret has the keys of all teams that have jobs, and each is replaced from
 * time to time (contracts/inference_contracts/platform_keys.py). So a thread looks at the secret again and again, and soon if
 * the key is missing or refused. Calls never wait for it.
 */
final class DoorKey implements Authentication, AutoCloseable {
    /** There is no key to send. */
    static final class MissingException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        MissingException(String message) {
            super(message, null, false, false);
        }
    }

    /** `LOOK_SECONDS` of the contract. */
    static final long LOOK_NANOS = TimeUnit.SECONDS.toNanos(600);
    /** Between two looks while the key is missing or refused. */
    static final long SOON_NANOS = TimeUnit.SECONDS.toNanos(5);

    private static final Logger LOG = LoggerFactory.getLogger(DoorKey.class);
    private static final JsonMapper MAPPER = JsonMapper.builder().build();
    private static final String HEADER = "Authorization";

    private final Callable<String> secret;
    private final String team;
    private final LongSupplier clock;
    private volatile String key;
    private volatile String trouble = "the secret with the key was not read yet";
    private long looked;
    private boolean isSettled;
    private boolean isClosed;

    /**
     * @param secret reads the value of the secret
     * @param team the team whose key is used
     * @param clock nanoseconds of a clock that only goes forward
     */
    DoorKey(Callable<String> secret, String team, LongSupplier clock) {
        this.secret = secret;
        this.team = team;
        this.clock = clock;
    }

    /** Returns the key of a job, which a thread reads from AWS Secrets Manager until this is closed. */
    static DoorKey open(JobConfiguration.Door door) {
        DoorKey opened = new DoorKey(SecretValue.of(door.secret()), door.team(), System::nanoTime);
        Thread thread = new Thread(opened::run, "key for the front door");
        thread.setDaemon(true);
        thread.start();
        return opened;
    }

    /** Returns why there is no key to send; null if there is one. */
    String missing() {
        return key == null ? trouble : null;
    }

    @Override
    public Map<String, String> headers(URI uri, Map<String, String> headers, byte[] body) {
        String current = key;
        if (current == null) {
            throw new MissingException(trouble);
        }
        return Map.of(HEADER, "Bearer " + current);
    }

    /** The job repeats the call itself, so this only makes the thread look soon. */
    @Override
    public boolean refused(Map<String, String> headers) {
        if (headers.equals(Map.of(HEADER, "Bearer " + key))) {
            synchronized (this) {
                isSettled = false;
                notifyAll();
            }
        }
        return false;
    }

    /** Reads the secret. A key that was read before is kept if there is no other. */
    void look() {
        String found = null;
        String problem = null;
        try {
            JsonNode keys = MAPPER.readTree(secret.call());
            found = keys.path(team).textValue();
            if (found == null) {
                problem = "the secret has no key of the team " + team + " yet";
            }
        } catch (JsonProcessingException wrong) {
            // Its message could have a part of a key.
            problem = "the secret is no JSON object with a key for each team";
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            problem = "the thread was interrupted";
        } catch (Exception error) {
            problem = "the secret with the key cannot be read: " + error.getMessage();
        }
        if (problem != null && !problem.equals(trouble)) {
            LOG.warn("No new key for the front door: {}", problem);
        }
        synchronized (this) {
            key = found == null ? key : found;
            trouble = problem;
            looked = clock.getAsLong();
            isSettled = found != null;
        }
    }

    /** Returns the nanoseconds until the next look. */
    synchronized long untilNextLook() {
        return looked + (isSettled ? LOOK_NANOS : SOON_NANOS) - clock.getAsLong();
    }

    private void run() {
        while (!Thread.currentThread().isInterrupted()) {
            look();
            synchronized (this) {
                try {
                    for (long left = untilNextLook(); !isClosed && left > 0; left = untilNextLook()) {
                        wait(TimeUnit.NANOSECONDS.toMillis(left) + 1);
                    }
                } catch (InterruptedException stopped) {
                    return;
                }
                if (isClosed) {
                    return;
                }
            }
        }
    }

    @Override
    public synchronized void close() {
        isClosed = true;
        notifyAll();
    }
}
