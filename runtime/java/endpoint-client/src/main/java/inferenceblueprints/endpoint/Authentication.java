package inferenceblueprints.endpoint;

import java.net.URI;
import java.util.Map;
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
     * Says that the endpoint answered 401 to a request. The client then sends the request once more, at once, if there are
     * other headers.
     *
     * @param headers what {@link #headers} returned for the request
     * @return whether the next request would have other headers
     */
    default boolean refused(Map<String, String> headers) {
        return false;
    }

    /**
     * Sends a token in the header {@code Authorization}. After 401, its source is asked once more, and another token is sent
     * at once.
     *
     * @param token returns the current token; it is called for every attempt, so it should cache
     * @return the authentication
     */
    static Authentication bearer(Supplier<String> token) {
        return new BearerToken(token, refused -> {});
    }

    /**
     * Sends a token that expires. After 401, a new one is fetched and sent at once.
     *
     * @param token the token
     * @return the authentication
     */
    static Authentication bearer(RefreshingToken token) {
        return new BearerToken(token, token::forget);
    }
}
