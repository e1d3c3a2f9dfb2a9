package inferenceblueprints.enrichment;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.OffsetDateTime;

/** Reads events, and says what is wrong with those that are not events. */
final class EventReader {
    /** Larger events would fill the prompt, and their dead letters would not fit into a record. */
    static final int MOST_BYTES = 256 << 10;
    /** An event of the future would hide later answers, because its version is higher than theirs. */
    static final long MOST_AHEAD_MILLIS = 10 * 60_000;
    /** The signal store's limit for keys. */
    private static final int MOST_KEY_BYTES = 1024;

    private static final JsonMapper MAPPER = JsonMapper.builder()
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .build();

    private final JobConfiguration.Session fields;

    EventReader(JobConfiguration.Session fields) {
        this.fields = fields;
    }

    /** An event that cannot be used. */
    static final class PoisonException extends Exception {
        private static final long serialVersionUID = 1L;

        PoisonException(String message) {
            super(message);
        }
    }

    Event read(KafkaRecord record, long now) throws PoisonException {
        byte[] value = record.value();
        if (value.length > MOST_BYTES) {
            throw new PoisonException("the event has " + value.length + " bytes; at most " + MOST_BYTES + " are allowed");
        }
        String body = decode(value);
        JsonNode event = parse(body);
        String key = text(event, fields.key());
        int size = key.getBytes(StandardCharsets.UTF_8).length;
        if (size < 1 || size > MOST_KEY_BYTES) {
            throw new PoisonException(fields.key() + ": must have 1 to " + MOST_KEY_BYTES + " bytes; got " + size);
        }
        long time = time(event.path(fields.time()));
        if (time < 0 || time > now + MOST_AHEAD_MILLIS) {
            throw new PoisonException(fields.time() + ": must be after 1970 and at most ten minutes ahead; got "
                    + shorten(event.path(fields.time()).asText()));
        }
        String id = fields.id() == null || event.path(fields.id()).isMissingNode() || event.path(fields.id()).isNull()
                ? null
                : event.path(fields.id()).asText();
        return new Event(key, time, id, body, record.partition(), record.offset(), record.topic());
    }

    private static String decode(byte[] value) throws PoisonException {
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(value)).toString();
        } catch (CharacterCodingException error) {
            throw new PoisonException("the event is not UTF-8");
        }
    }

    private static JsonNode parse(String body) throws PoisonException {
        try {
            JsonNode event = MAPPER.readTree(body);
            if (event.isObject()) {
                return event;
            }
            throw new PoisonException("the event is not a JSON object");
        } catch (JsonProcessingException error) {
            throw new PoisonException("the event is not JSON: " + shorten(error.getOriginalMessage()));
        }
    }

    private static String text(JsonNode event, String name) throws PoisonException {
        JsonNode value = event.path(name);
        if (value.isTextual() || value.isIntegralNumber()) {
            return value.asText();
        }
        throw new PoisonException(name + ": missing, or neither text nor a whole number");
    }

    private long time(JsonNode value) throws PoisonException {
        if (value.isIntegralNumber() && value.canConvertToLong()) {
            return value.longValue();
        }
        if (value.isTextual()) {
            try {
                return OffsetDateTime.parse(value.textValue()).toInstant().toEpochMilli();
            } catch (DateTimeException | ArithmeticException error) {
                throw new PoisonException(fields.time() + ": not a time in ISO 8601 with offset; got "
                        + shorten(value.textValue()));
            }
        }
        throw new PoisonException(fields.time() + ": must be milliseconds since 1970 or text in ISO 8601");
    }

    static String shorten(String text) {
        String line = text.replaceAll("\\s+", " ").strip();
        return line.length() <= 200 ? line : line.substring(0, 200) + "…";
    }
}
