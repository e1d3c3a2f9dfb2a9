package inferenceblueprints.endpoint;

import dev.failsafe.CircuitBreaker;
import java.time.Duration;

/** Stops calls for a while if the endpoint fails too often. The only class that knows Failsafe. */
final class Breaker {
    private static final int SUCCESSES_TO_CLOSE = 5;

    private final CircuitBreaker<Object> circuit;

    Breaker(Settings settings) {
        circuit = CircuitBreaker.builder()
                .withFailureRateThreshold(
                        settings.circuitFailurePercent, settings.circuitCalls, settings.circuitWindow)
                .withDelay(settings.circuitPause)
                .withSuccessThreshold(SUCCESSES_TO_CLOSE)
                .build();
    }

    /** Asks for a permit. Each permit needs exactly one of the following three calls. */
    boolean tryAcquire() {
        return circuit.tryAcquirePermit();
    }

    void succeeded() {
        circuit.recordSuccess();
    }

    void failed() {
        circuit.recordFailure();
    }

    /** The request ended without a result. A half-open circuit counts permits, so there it must not get lost. */
    void withoutResult() {
        if (circuit.isHalfOpen()) {
            circuit.recordFailure();
        }
    }

    boolean isClosed() {
        return circuit.isClosed();
    }

    Duration remaining() {
        return circuit.getRemainingDelay();
    }
}
