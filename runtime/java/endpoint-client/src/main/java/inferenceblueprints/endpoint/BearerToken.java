package inferenceblueprints.endpoint;

import java.net.URI;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** A token in the header {@code Authorization}. */
final class BearerToken implements Authentication {
    private static final String HEADER = "Authorization";
    private static final String SCHEME = "Bearer ";

    private final Supplier<String> token;
    private final Consumer<String> forget;

    /** @param forget is told which token was refused, before the next one is asked for */
    BearerToken(Supplier<String> token, Consumer<String> forget) {
        this.token = Objects.requireNonNull(token, "token");
        this.forget = forget;
    }

    @Override
    public Map<String, String> headers(URI uri, Map<String, String> headers, byte[] body) {
        return Map.of(HEADER, SCHEME + token.get());
    }

    @Override
    public boolean refused(Map<String, String> headers) {
        String sent = headers.get(HEADER);
        forget.accept(sent.substring(SCHEME.length()));
        return !sent.equals(SCHEME + token.get());
    }
}
