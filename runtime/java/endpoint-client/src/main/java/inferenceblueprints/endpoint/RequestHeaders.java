package inferenceblueprints.endpoint;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Map;

/** Headers that the library's router reads. Their names are in a file that the Python library reads too. */
final class RequestHeaders {
    private static final String FILE = "request_headers.json";
    private static final JsonNode NAMES = read();

    static final String SESSION = NAMES.required("session").textValue();
    static final String REQUEST_ID = NAMES.required("requestId").textValue();
    /** Headers of a request of batch. */
    static final Map<String, String> BATCH = Map.of(
            NAMES.required("policyClass").textValue(), NAMES.at("/batch/class").textValue(),
            NAMES.required("priority").textValue(), NAMES.at("/batch/priority").textValue());

    private RequestHeaders() {}

    private static JsonNode read() {
        try (InputStream file = RequestHeaders.class.getResourceAsStream(FILE)) {
            return Json.MAPPER.readTree(file);
        } catch (IOException error) {
            throw new UncheckedIOException("the jar lacks " + FILE, error);
        }
    }
}
