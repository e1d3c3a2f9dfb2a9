package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/**
 * Broker, task manager, endpoint and store fail at random, alone and together, while events flow; the ledger counts.
 *
 * <p>The variable RANDOM_KILLS is the number of rounds of failures, RANDOM_KILLS_SEED what chooses them.
 */
class RandomKillsTest {
    private static final int ROUNDS = Integer.parseInt(System.getenv().getOrDefault("RANDOM_KILLS", "3"));
    private static final long SEED = Long.parseLong(System.getenv().getOrDefault("RANDOM_KILLS_SEED", "1"));
    private static final int SHOPPERS = 30;
    /** A parallelism that needs both task managers. */
    private static final int ON_BOTH = 6;
    /** What an endpoint does that dies or is about to. */
    private static final List<ModelServer.Behaviour> FAILURES = List.of(
            ModelServer.Behaviour.RESET,
            ModelServer.Behaviour.UNAVAILABLE,
            ModelServer.Behaviour.END_IN_THE_MIDDLE,
            ModelServer.Behaviour.HANG);

    private enum Part {
        BROKER,
        TASK_MANAGER,
        ENDPOINT,
        STORE
    }

    private final Random chance = new Random(SEED);
    private int sent;

    @Test
    void everyVersionIsAnsweredOrADeadLetterAndVisibleOnce() throws Exception {
        try (Journey journey = new Journey("random-kills")) {
            journey.start(ON_BOTH, null);
            send(journey);
            journey.flush();
            journey.ledger.check();
            for (int round = 0; round < ROUNDS; round++) {
                List<Part> failing = new ArrayList<>(Arrays.asList(Part.values()));
                Collections.shuffle(failing, chance);
                failing = failing.subList(0, 1 + chance.nextInt(3));
                System.out.println("seed " + SEED + ", round " + round + ": " + failing);
                fail(journey, failing);
                send(journey);
                journey.flush();
                journey.ledger.check();
            }
            // With all parts back, a last event of each shopper is answered.
            pauseOfTheCircuitBreaker();
            send(journey);
            journey.flush();
            journey.ledger.check();
            assertEquals(SHOPPERS, journey.ledger.signals().size());
            String last = "e" + (sent - 1) + " 12";
            journey.ledger.signals().values().forEach(each -> assertEquals(last, each.get("value").textValue()));
        }
    }

    /** Sends an event of every shopper. */
    private void send(Journey journey) {
        journey.sendRound(SHOPPERS, sent++);
    }

    /** Lets parts fail while events flow, and brings them back in another order. */
    private void fail(Journey journey, List<Part> failing) throws Exception {
        List<Part> back = new ArrayList<>(failing);
        Collections.shuffle(back, chance);
        for (Part each : failing) {
            send(journey);
            Thread.sleep(chance.nextInt(400));
            switch (each) {
                case BROKER -> Rig.BROKER.stop();
                case STORE -> Rig.VALKEY.kill();
                case ENDPOINT -> {
                    ModelServer.Behaviour behaviour = FAILURES.get(chance.nextInt(FAILURES.size()));
                    journey.model.behaviour = request -> behaviour;
                }
                case TASK_MANAGER -> Rig.CLUSTER.killTaskManager();
            }
        }
        send(journey);
        Thread.sleep(chance.nextInt(1_500));
        for (Part each : back) {
            Thread.sleep(chance.nextInt(400));
            switch (each) {
                case BROKER -> Rig.BROKER.start();
                case STORE -> Rig.VALKEY.start();
                case ENDPOINT -> journey.model.behaviour = request -> ModelServer.Behaviour.ANSWER;
                case TASK_MANAGER -> Rig.CLUSTER.startTaskManager();
            }
        }
    }

    private static void pauseOfTheCircuitBreaker() throws InterruptedException {
        Thread.sleep(6_000);
    }
}
