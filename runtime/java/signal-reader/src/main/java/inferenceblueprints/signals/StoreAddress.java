package inferenceblueprints.signals;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Address of a store, and the user that connects.
 *
 * @param host host name of the endpoint
 * @param port its port
 * @param cache name of the ElastiCache serverless cache, which turns on TLS, IAM authentication and cluster mode; empty for
 *     a server without TLS and users
 * @param user user of the cache
 * @param region AWS region of the cache
 * @param authority file with the certificate of the authority that signed the cache's certificate; empty trusts the
 *     authorities of the system
 */
public record StoreAddress(
        String host,
        int port,
        Optional<String> cache,
        Optional<String> user,
        Optional<String> region,
        Optional<Path> authority) {
    private static final int DEFAULT_PORT = 6379;
    private static final int HIGHEST_PORT = 65_535;

    /**
     * Reads the variables that the Python package reads too: {@code SIGNALS_HOST}, {@code SIGNALS_PORT},
     * {@code SIGNALS_CACHE}, {@code SIGNALS_USER}, {@code SIGNALS_REGION} and {@code SIGNALS_AUTHORITY}. The region can also
     * come from {@code AWS_REGION} or {@code AWS_DEFAULT_REGION}.
     *
     * @param environment the variables, usually {@code System.getenv()}
     * @return the address
     * @throws SettingsException if variables are missing or wrong; the message names all of them
     */
    public static StoreAddress read(Map<String, String> environment) {
        Optional<String> host = value(environment, "SIGNALS_HOST");
        String port = environment.getOrDefault("SIGNALS_PORT", String.valueOf(DEFAULT_PORT));
        Optional<String> cache = value(environment, "SIGNALS_CACHE");
        Optional<String> user = value(environment, "SIGNALS_USER");
        Optional<String> region = value(environment, "SIGNALS_REGION")
                .or(() -> value(environment, "AWS_REGION"))
                .or(() -> value(environment, "AWS_DEFAULT_REGION"));
        List<String> faults = new ArrayList<>();
        if (host.isEmpty()) {
            faults.add("SIGNALS_HOST: missing; set it to the host name of the cache's endpoint");
        }
        if (!port.matches("\\d{1,5}") || Integer.parseInt(port) > HIGHEST_PORT) {
            faults.add("SIGNALS_PORT: got '" + port + "', must be a number");
        }
        if (cache.isPresent() && user.isEmpty()) {
            faults.add("SIGNALS_USER: missing; SIGNALS_CACHE needs a user of the cache");
        }
        if (cache.isPresent() && region.isEmpty()) {
            faults.add("SIGNALS_REGION: missing; set it to the AWS region of the cache");
        }
        if (environment.containsKey("SIGNALS_TUNNEL")) {
            faults.add("SIGNALS_TUNNEL: only the Python package connects through a tunnel; remove the variable");
        }
        if (!faults.isEmpty()) {
            throw new SettingsException(String.join("\n", faults));
        }
        Optional<Path> authority = value(environment, "SIGNALS_AUTHORITY").map(Path::of);
        return new StoreAddress(host.orElseThrow(), Integer.parseInt(port), cache, user, region, authority);
    }

    private static Optional<String> value(Map<String, String> environment, String name) {
        return Optional.ofNullable(environment.get(name)).filter(text -> !text.isEmpty());
    }

    void checkServer() {
        if (cache.isPresent()) {
            throw new SettingsException("a cache needs credentials: use open(address, credentials)");
        }
    }

    void checkCache() {
        if (cache.isEmpty() || user.isEmpty() || region.isEmpty()) {
            throw new SettingsException("credentials are for a cache: the address must have cache, user and region");
        }
    }
}
