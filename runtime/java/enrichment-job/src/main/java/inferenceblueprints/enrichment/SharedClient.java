package inferenceblueprints.enrichment;

import inferenceblueprints.endpoint.EndpointClient;
import java.net.URI;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/** One client for all subtasks of a task manager, because each client has threads of its own. The last one closes it. */
final class SharedClient implements AutoCloseable {
    private static final Map<JobConfiguration.Endpoint, SharedClient> OPEN = new HashMap<>();

    private final JobConfiguration.Endpoint endpoint;
    private final DoorKey key;
    private final EndpointClient client;
    private int users;

    private SharedClient(JobConfiguration.Endpoint endpoint) {
        this.endpoint = endpoint;
        key = endpoint.door() == null ? null : DoorKey.open(endpoint.door());
        // Flink repeats calls, and a session's requests are not hedged.
        EndpointClient.Builder builder = EndpointClient.builder(URI.create(endpoint.url()))
                .maxAttempts(1)
                .withoutHedging()
                .maxInFlight(endpoint.maxInFlight())
                .deadline(Duration.ofMillis(endpoint.deadlineMillis()));
        client = (key == null ? builder : builder.authentication(key)).build();
    }

    static SharedClient open(JobConfiguration.Endpoint endpoint) {
        synchronized (OPEN) {
            SharedClient shared = OPEN.computeIfAbsent(endpoint, SharedClient::new);
            shared.users++;
            return shared;
        }
    }

    /** Returns why no call can be sent now; null if one can. */
    String missingKey() {
        return key == null ? null : key.missing();
    }

    EndpointClient client() {
        return client;
    }

    @Override
    public void close() {
        synchronized (OPEN) {
            users--;
            if (users == 0) {
                OPEN.remove(endpoint);
                client.close();
                if (key != null) {
                    key.close();
                }
            }
        }
    }
}
