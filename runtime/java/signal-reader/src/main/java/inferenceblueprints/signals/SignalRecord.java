package inferenceblueprints.signals;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.regex.Pattern;

/**
 * The answer of a model about a thing, such as a product.
 *
 * @param name name of the signal, in kebab-case
 * @param key identifier of the thing; 1 to 1,024 bytes of UTF-8
 * @param value answer of the model
 * @param version orders the values of one key, for example the time of the request in milliseconds
 * @param model name of the model
 * @param promptHash digest of the prompt
 * @param time time of the answer
 * @param expires time from which it is no longer valid; the store deletes it then
 */
public record SignalRecord(
        String name,
        String key,
        String value,
        long version,
        String model,
        String promptHash,
        Instant time,
        Instant expires) {
    private static final Pattern NAME = Pattern.compile("[a-z][a-z0-9-]{0,62}");
    private static final int LONGEST_KEY_BYTES = 1024;
    private static final int LONGEST_SHOWN = 80;
    private static final long HIGHEST_VERSION = 1L << 53;
    private static final JsonMapper MAPPER =
            JsonMapper.builder().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS).build();

    /** Checks that the store can hold the signal. */
    void check() {
        checkName(name);
        checkKey(key);
        checkVersion(version);
    }

    /** Returns the record as it is stored. */
    String toJson() {
        return MAPPER.createObjectNode()
                .put("value", value)
                .put("version", version)
                .put("model", model)
                .put("promptHash", promptHash)
                .put("time", time.getEpochSecond())
                .put("expires", expires.getEpochSecond())
                .toString();
    }

    private static void checkKey(String key) {
        int size = key.getBytes(StandardCharsets.UTF_8).length;
        if (size < 1 || size > LONGEST_KEY_BYTES) {
            throw new InvalidSignalException("key: must have 1 to " + LONGEST_KEY_BYTES + " bytes; got " + size);
        }
    }

    private static void checkVersion(long version) {
        if (version < 0 || version >= HIGHEST_VERSION) {
            throw new InvalidSignalException("version: must be 0 to below 2^53; got " + version);
        }
    }

    /** Reads a record, and checks what the store can hold. */
    static SignalRecord read(String name, String key, String stored) {
        checkName(name);
        checkKey(key);
        try {
            JsonNode fields = MAPPER.readTree(stored);
            long version = number(fields, "version");
            checkVersion(version);
            return new SignalRecord(
                    name,
                    key,
                    text(fields, "value"),
                    version,
                    text(fields, "model"),
                    text(fields, "promptHash"),
                    Instant.ofEpochSecond(number(fields, "time")),
                    Instant.ofEpochSecond(number(fields, "expires")));
        } catch (JsonProcessingException | InvalidSignalException error) {
            throw new InvalidSignalException(
                    "record of " + name + ", " + shorten(key) + ": cannot be read: " + error.getMessage(), error);
        }
    }

    private static String text(JsonNode fields, String name) {
        if (!fields.path(name).isTextual()) {
            throw new InvalidSignalException(name + ": missing, or not a string");
        }
        return fields.path(name).textValue();
    }

    private static long number(JsonNode fields, String name) {
        if (!fields.path(name).isIntegralNumber() || !fields.path(name).canConvertToLong()) {
            throw new InvalidSignalException(name + ": missing, or not a whole number");
        }
        return fields.path(name).longValue();
    }

    static void checkName(String name) {
        if (!NAME.matcher(name).matches()) {
            throw new InvalidSignalException("name: must match " + NAME + "; got '" + shorten(name) + "'");
        }
    }

    /** Returns the key in Valkey. */
    static String storageKey(String name, String key) {
        return "signal:" + name + ":" + key;
    }

    private static String shorten(String text) {
        return text.length() <= LONGEST_SHOWN ? text : text.substring(0, LONGEST_SHOWN);
    }
}
