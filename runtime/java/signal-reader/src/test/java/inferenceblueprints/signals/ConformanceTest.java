package inferenceblueprints.signals;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import software.amazon.awssdk.identity.spi.AwsSessionCredentialsIdentity;
import software.amazon.awssdk.identity.spi.IdentityProvider;
import software.amazon.awssdk.identity.spi.ResolveIdentityRequest;

/** The cases that the Python package passes too (tests/runtime/signals/test_conformance.py). */
class ConformanceTest {
    private static final JsonNode CASES = read();

    private static JsonNode read() {
        try {
            Path file = Path.of(System.getProperty("checkout"), "tests/runtime/signals/conformance.json");
            return JsonMapper.builder().build().readTree(Files.readString(file));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static Stream<JsonNode> each(String kind) {
        return StreamSupport.stream(CASES.required(kind).spliterator(), false);
    }

    static Stream<JsonNode> names() {
        return each("names");
    }

    @ParameterizedTest
    @MethodSource("names")
    void namesAreChecked(JsonNode name) {
        String text = name.get("name").textValue();
        if (name.get("valid").booleanValue()) {
            SignalRecord.checkName(text);
        } else {
            assertThrows(InvalidSignalException.class, () -> SignalRecord.checkName(text));
        }
    }

    static Stream<JsonNode> records() {
        return each("records");
    }

    @ParameterizedTest
    @MethodSource("records")
    void recordsAreRead(JsonNode record) {
        String name = record.get("name").textValue();
        String key = record.get("key").textValue().repeat(record.path("keyRepeated").asInt(1));
        String stored = record.get("stored").textValue();
        if (!record.has("reads")) {
            assertThrows(InvalidSignalException.class, () -> SignalRecord.read(name, key, stored));
            return;
        }
        JsonNode reads = record.get("reads");
        assertEquals(
                new SignalRecord(
                        name,
                        key,
                        reads.get("value").textValue(),
                        reads.get("version").longValue(),
                        reads.get("model").textValue(),
                        reads.get("promptHash").textValue(),
                        Instant.ofEpochSecond(reads.get("time").longValue()),
                        Instant.ofEpochSecond(reads.get("expires").longValue())),
                SignalRecord.read(name, key, stored));
    }

    static Stream<JsonNode> keys() {
        return each("storageKeys");
    }

    @ParameterizedTest
    @MethodSource("keys")
    void keysHaveTheirPlace(JsonNode key) {
        assertEquals(
                key.get("stored").textValue(),
                SignalRecord.storageKey(key.get("name").textValue(), key.get("key").textValue()));
    }

    static Stream<JsonNode> environments() {
        return each("environments");
    }

    @ParameterizedTest
    @MethodSource("environments")
    void variablesAreRead(JsonNode environment) {
        Map<String, String> variables = new TreeMap<>();
        environment.get("variables").properties().forEach(each -> variables.put(each.getKey(), each.getValue().textValue()));
        if (environment.has("faults")) {
            String message = assertThrows(SettingsException.class, () -> StoreAddress.read(variables)).getMessage();
            environment.get("faults").forEach(each -> org.junit.jupiter.api.Assertions.assertTrue(
                    message.contains(each.textValue()), message));
            assertEquals(environment.get("faults").size(), message.split("\n").length, message);
            return;
        }
        StoreAddress address = StoreAddress.read(variables);
        assertEquals(environment.get("host").textValue(), address.host());
        assertEquals(environment.get("port").intValue(), address.port());
        assertEquals(Optional.ofNullable(environment.path("cache").textValue()), address.cache());
    }

    private record Fixed(JsonNode token) implements IdentityProvider<AwsSessionCredentialsIdentity> {
        @Override
        public Class<AwsSessionCredentialsIdentity> identityType() {
            return AwsSessionCredentialsIdentity.class;
        }

        @Override
        public CompletableFuture<AwsSessionCredentialsIdentity> resolveIdentity(ResolveIdentityRequest request) {
            return CompletableFuture.completedFuture(AwsSessionCredentialsIdentity.create(
                    token.get("accessKey").textValue(),
                    token.get("secretKey").textValue(),
                    token.get("sessionToken").textValue()));
        }
    }

    @Test
    void theTokenIsThatOfPython() {
        JsonNode token = CASES.get("token");
        StoreAddress address = new StoreAddress(
                "h",
                6379,
                Optional.of(token.get("cache").textValue()),
                Optional.of(token.get("user").textValue()),
                Optional.of(token.get("region").textValue()),
                Optional.empty());
        Clock clock = Clock.fixed(Instant.parse(token.get("time").textValue()), ZoneOffset.UTC);
        assertEquals(
                parts(token.get("token").textValue()), parts(new IamToken(address, new Fixed(token), clock).sign()));
    }

    /** The order of parameters has no meaning. */
    private static Map<String, String> parts(String token) {
        String[] pathAndQuery = token.split("\\?", 2);
        Map<String, String> parts = new TreeMap<>(Map.of("", pathAndQuery[0]));
        for (String each : pathAndQuery[1].split("&")) {
            String[] pair = each.split("=", 2);
            parts.put(pair[0], URLDecoder.decode(pair[1], StandardCharsets.UTF_8));
        }
        return parts;
    }

    @Test
    void theScriptOfWritesIsThatOfPython() {
        assertEquals(CASES.required("writeScript").textValue(), Script.WRITE_IF_NEWER.text());
    }
}
