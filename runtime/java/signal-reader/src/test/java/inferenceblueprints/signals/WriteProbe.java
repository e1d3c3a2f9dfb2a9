package inferenceblueprints.signals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** Writes the signals of each line of JSON on standard input at once, and prints what became of them. tests/java starts it. */
final class WriteProbe {
    private static final JsonMapper MAPPER = JsonMapper.builder().build();

    private WriteProbe() {}

    private static SignalWriter open(String kind) {
        StoreAddress address = StoreAddress.read(System.getenv());
        return switch (kind) {
            case "server" -> SignalWriter.open(address);
            case "cluster" -> SignalWriter.cluster(address);
            case "cache" -> SignalWriter.open(address, new Probe.FromEnvironment());
            default -> throw new IllegalArgumentException(kind);
        };
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (SignalWriter writer = open(arguments[0])) {
            System.out.println("{\"opened\":true}");
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                System.out.println(MAPPER.writeValueAsString(written(writer, MAPPER.readTree(line))));
            }
        } catch (StoreException error) {
            System.out.println(MAPPER.writeValueAsString(MAPPER.createObjectNode().put("error", error.reason().name())));
        }
    }

    private static List<Object> written(SignalWriter writer, JsonNode signals) {
        List<CompletableFuture<?>> writes = new ArrayList<>();
        for (JsonNode each : signals) {
            SignalRecord signal = new SignalRecord(
                    each.get("name").textValue(),
                    each.get("key").textValue(),
                    each.get("value").textValue(),
                    each.get("version").longValue(),
                    each.get("model").textValue(),
                    each.get("promptHash").textValue(),
                    Instant.ofEpochSecond(each.get("time").longValue()),
                    Instant.ofEpochSecond(each.get("expires").longValue()));
            try {
                writes.add(writer.writeAsync(signal));
            } catch (InvalidSignalException error) {
                writes.add(CompletableFuture.completedFuture("INVALID"));
            }
        }
        List<Object> results = new ArrayList<>();
        for (CompletableFuture<?> write : writes) {
            try {
                results.add(write.join());
            } catch (CompletionException error) {
                results.add(((StoreException) error.getCause()).reason().name());
            }
        }
        return results;
    }
}
