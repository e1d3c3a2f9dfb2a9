package inferenceblueprints.signals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import software.amazon.awssdk.identity.spi.AwsSessionCredentialsIdentity;
import software.amazon.awssdk.identity.spi.IdentityProvider;
import software.amazon.awssdk.identity.spi.ResolveIdentityRequest;

/** Reads what lines of JSON on standard input ask for, and prints a line of JSON for each. tests/java starts it. */
final class Probe {
    private static final JsonMapper MAPPER = JsonMapper.builder().build();

    private Probe() {}

    /** Credentials of the environment, as the AWS SDK's provider takes them. */
    static final class FromEnvironment implements IdentityProvider<AwsSessionCredentialsIdentity> {
        @Override
        public Class<AwsSessionCredentialsIdentity> identityType() {
            return AwsSessionCredentialsIdentity.class;
        }

        @Override
        public CompletableFuture<AwsSessionCredentialsIdentity> resolveIdentity(ResolveIdentityRequest request) {
            Map<String, String> variables = System.getenv();
            return CompletableFuture.completedFuture(AwsSessionCredentialsIdentity.create(
                    variables.get("AWS_ACCESS_KEY_ID"),
                    variables.get("AWS_SECRET_ACCESS_KEY"),
                    variables.get("AWS_SESSION_TOKEN")));
        }
    }

    private static SignalReader open(String kind) {
        StoreAddress address = StoreAddress.read(System.getenv());
        return switch (kind) {
            case "server" -> SignalReader.open(address, Duration.ofSeconds(5));
            case "cluster" -> SignalReader.cluster(address, Duration.ofSeconds(5));
            case "cache" -> SignalReader.open(address, new FromEnvironment(), Duration.ofSeconds(5));
            default -> throw new IllegalArgumentException(kind);
        };
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (SignalReader reader = open(arguments[0])) {
            System.out.println("{\"opened\":true}");
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                System.out.println(MAPPER.writeValueAsString(answer(reader, MAPPER.readTree(line))));
            }
        } catch (StoreException error) {
            System.out.println(MAPPER.writeValueAsString(MAPPER.createObjectNode().put("error", error.reason().name())));
        }
    }

    private static JsonNode answer(SignalReader reader, JsonNode question) throws Exception {
        String name = question.get("name").textValue();
        List<String> keys = new ArrayList<>();
        question.get("keys").forEach(each -> keys.add(each.textValue()));
        ObjectNode answer = MAPPER.createObjectNode();
        try {
            if (keys.size() == 1) {
                reader.get(name, keys.get(0)).ifPresent(each -> answer.set(keys.get(0), record(each)));
                reader.getAsync(name, keys.get(0)).get();
            } else {
                reader.getMany(name, keys).forEach((key, each) -> answer.set(key, record(each)));
            }
        } catch (StoreException error) {
            answer.put("error", error.reason().name());
        } catch (InvalidSignalException error) {
            answer.put("error", "INVALID");
        }
        return answer;
    }

    private static ObjectNode record(SignalRecord signal) {
        return MAPPER.createObjectNode()
                .put("value", signal.value())
                .put("version", signal.version())
                .put("model", signal.model())
                .put("promptHash", signal.promptHash())
                .put("time", signal.time().getEpochSecond())
                .put("expires", signal.expires().getEpochSecond());
    }
}
