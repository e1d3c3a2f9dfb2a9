package inferenceblueprints.enrichment;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/**
 * The story that the snapshot in the tests' resources tells: a session with two answered events, and one whose call has not
 * ended. As a program it writes the snapshot anew: only for a change that needs a new one, with the release notes saying that
 * running jobs must start without their snapshot.
 */
final class SavedSnapshot {
    static final String NAME = "snapshot";
    private static final long NOON = 1_790_000_000_000L;

    private SavedSnapshot() {}

    static Journey journey() throws Exception {
        // The session must not be over when the snapshot is read years later, and the open call not when it is written.
        return new Journey(NAME).with(each -> {
            ((ObjectNode) each.get("session")).put("gapMillis", 3_000_000_000_000L);
            ((ObjectNode) each.get("endpoint")).put("deadlineMillis", 60_000);
        });
    }

    static void sendAnswered(Journey journey) {
        journey.send("answered", NOON, "e0");
        journey.send("answered", NOON + 1_000, "e1");
        journey.flush();
    }

    static void sendOpen(Journey journey) {
        journey.send("open", NOON, "o0");
        journey.flush();
    }

    static void sendNext(Journey journey) {
        journey.send("answered", NOON + 2_000, "e2");
        journey.flush();
    }

    /** Writes the snapshot into the folder that the only argument names. */
    public static void main(String[] arguments) throws Exception {
        try (Journey journey = journey()) {
            journey.start(2, null);
            sendAnswered(journey);
            journey.ledger.check();
            journey.model.behaviour = request -> ModelServer.Behaviour.HANG;
            sendOpen(journey);
            Rig.await(() -> journey.model.requests.stream().anyMatch(each -> each.user().startsWith("o0"))
                    ? ""
                    : "the open call");
            // Files of the history that are complete but not yet visible would be missing later.
            Thread.sleep(5_000);
            Path written = Path.of(java.net.URI.create(journey.stop()));
            Files.createDirectories(Path.of(arguments[0]));
            try (Stream<Path> files = Files.list(written)) {
                for (Path each : files.toList()) {
                    Files.copy(each, Path.of(arguments[0]).resolve(each.getFileName()));
                }
            }
        }
        System.exit(0);
    }
}
