package inferenceblueprints.endpoint;

import java.net.URI;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;

/** Proves to the endpoint who calls. The client asks for fresh headers before every attempt. */
@FunctionalInterface
public interface Authentication {
    /**
     * Returns the headers to add to a request.
     *
     * @param uri address of the request
     * @param headers headers that it has already; a signature may cover them
     * @param body its body
     * @return headers to add
     */
    Map<String, String> headers(URI uri, Map<String, String> headers, byte[] body);

    /**
     * Sends a token in the header {@code Authorization}.
     *
     * @param token returns the current token; it is called for every attempt, so it should cache
     * @return the authentication
     */
    static Authentication bearer(Supplier<String> token) {
        Objects.requireNonNull(token, "token");
        return (uri, headers, body) -> Map.of("Authorization", "Bearer " + token.get());
    }
}
