package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.JobStatus;
import org.junit.jupiter.api.Test;

/** Nothing is lost and nothing is visible twice while parts of the system restart under load. */
class RestartsTest {
    private static final int SHOPPERS = 40;
    /** A parallelism that needs both task managers. */
    private static final int ON_BOTH = 6;

    private final AtomicInteger rounds = new AtomicInteger();

    /** Sends an event of every shopper, some of which get slow answers. */
    private void round(Journey journey) {
        journey.sendRound(SHOPPERS, rounds.getAndIncrement());
        journey.flush();
    }

    private void rounds(Journey journey, int count) throws InterruptedException {
        for (int each = 0; each < count; each++) {
            round(journey);
            Thread.sleep(250);
        }
    }

    private static void slowForSome(Journey journey) {
        journey.model.behaviour = request -> request.session().charAt(0) < '4'
                ? ModelServer.Behaviour.SLOW
                : ModelServer.Behaviour.ANSWER;
    }

    @Test
    void aLostTaskManager() throws Exception {
        try (Journey journey = new Journey("lost-machine")) {
            slowForSome(journey);
            journey.start(ON_BOTH, null);
            rounds(journey, 3);
            journey.ledger.check();
            rounds(journey, 3);
            round(journey);
            Rig.CLUSTER.replaceTaskManager(journey.job());
            rounds(journey, 4);
            journey.ledger.check();
            journey.ledger.signals().values().forEach(each -> assertEquals("e10 12", each.get("value").textValue()));
            assertEquals(SHOPPERS, journey.ledger.signals().size());
        }
    }

    @Test
    void anotherParallelismAfterAStop() throws Exception {
        try (Journey journey = new Journey("rescaled")) {
            slowForSome(journey);
            journey.start(2, null);
            rounds(journey, 3);
            journey.ledger.check();
            // Calls that have not ended are in the snapshot, and are sent again.
            journey.model.behaviour = request -> ModelServer.Behaviour.HANG;
            int before = journey.model.requests.size();
            round(journey);
            Rig.await(() -> journey.model.requests.size() >= before + SHOPPERS ? "" : "all requests");
            String savepoint = journey.stop();
            journey.model.behaviour = request -> ModelServer.Behaviour.ANSWER;
            journey.start(4, savepoint);
            journey.ledger.check();
            assertEquals(SHOPPERS, journey.ledger.lines().stream()
                    .filter(each -> each.get("value").textValue().equals("e3 12"))
                    .count());
            round(journey);
            journey.ledger.check();
            String savepointOfFour = journey.stop();
            journey.start(1, savepointOfFour);
            round(journey);
            journey.ledger.check();
            assertEquals(0, journey.ledger.deadLetters().size(), "a stop is no failure of calls");
            assertTrue(
                    journey.model.requests.stream().anyMatch(each -> each.user().startsWith("e0 12") && each.user().contains("e5")),
                    "sessions go on");
        }
    }

    /**
     * A job of a release that wrote its history to {@code s3://} is stopped as by an update, goes on with more subtasks and
     * {@code s3a://}, and then with fewer. Flink merges what subtasks know of a folder only if its addresses are equal
     * ({@code FileWriterBucket.merge}).
     */
    @Test
    void theHistoryOfAFormerReleaseGoesOnUnderAnotherScheme() throws Exception {
        try (Journey journey = new Journey("other-scheme")) {
            journey.checkpoints = Duration.ofMinutes(1);
            String folder = URI.create(journey.document.get("history").get("uri").textValue()).getPath();
            history(journey, "s3://bucket" + folder);
            String former = answered(journey, 2, null);
            history(journey, "s3a://bucket" + folder);
            String today = answered(journey, 4, former);
            answered(journey, 1, today);
            journey.ledger.check();
            assertEquals(3 * SHOPPERS, journey.ledger.lines().size());
            assertEquals(0, journey.ledger.deadLetters().size());
        }
    }

    /** Starts the job with a round of events that wait for it, and stops it when all have an answer. */
    private String answered(Journey journey, int parallelism, String savepoint) throws Exception {
        String answer = "e" + rounds.get() + " 12";
        round(journey);
        journey.start(parallelism, savepoint);
        Rig.await(() -> SHOPPERS == journey.ledger.signals().values().stream()
                                .filter(each -> each.get("value").textValue().equals(answer))
                                .count()
                        ? ""
                        : answer);
        return journey.stop();
    }

    private static void history(Journey journey, String address) {
        ((ObjectNode) journey.document.get("history")).put("uri", address);
    }

    @Test
    void aRestartOfValkeyWithALostTaskManager() throws Exception {
        try (Journey journey = new Journey("valkey-restarts")) {
            journey.start(ON_BOTH, null);
            rounds(journey, 2);
            journey.ledger.check();
            Rig.VALKEY.kill();
            try {
                rounds(journey, 3);
                // Answers wait for the store. No checkpoint may say that they are visible.
                Thread.sleep(1_500);
                assertEquals(JobStatus.RUNNING, journey.status());
                Rig.CLUSTER.replaceTaskManager(journey.job());
            } finally {
                Rig.VALKEY.start();
            }
            journey.ledger.check();
            rounds(journey, 2);
            journey.ledger.check();
            assertEquals(SHOPPERS, journey.ledger.signals().size());
            assertEquals(0, journey.ledger.deadLetters().size());
        }
    }

    @Test
    void aRestartOfTheBroker() throws Exception {
        try (Journey journey = new Journey("broker-restarts")
                .with(each -> ((ObjectNode) each.get("session")).put("debounceMillis", 0))) {
            // Dead letters are written too while the broker is away.
            journey.model.behaviour = request -> request.user().contains("e3 ")
                    ? ModelServer.Behaviour.REFUSE
                    : ModelServer.Behaviour.ANSWER;
            journey.start(2, null);
            rounds(journey, 3);
            journey.ledger.check();
            round(journey);
            Rig.BROKER.stop();
            Thread.sleep(1_500);
            Rig.BROKER.start();
            rounds.set(10);
            rounds(journey, 3);
            journey.model.behaviour = request -> ModelServer.Behaviour.ANSWER;
            round(journey);
            journey.ledger.check();
            assertEquals(SHOPPERS, journey.ledger.signals().size());
        }
    }
}
