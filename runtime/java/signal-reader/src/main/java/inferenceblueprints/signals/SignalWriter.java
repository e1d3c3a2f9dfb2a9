package inferenceblueprints.signals;

import java.time.Clock;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import software.amazon.awssdk.identity.spi.AwsCredentialsIdentity;
import software.amazon.awssdk.identity.spi.IdentityProvider;

/**
 * Writes signals. An older version never replaces a newer one, and of two values with the same version the first stays, so that
 * a write may be repeated. Threads share one writer, and their writes share a connection without waiting for each other.
 */
public final class SignalWriter implements AutoCloseable {
    /** Limit for an answer, as in the Python package: long enough for a server that is busy or restarts. */
    private static final Duration ANSWER = Duration.ofSeconds(5);

    private final Store store;

    private SignalWriter(Store store) {
        this.store = store;
    }

    /**
     * Opens a writer of a server without TLS and users, such as one on this machine.
     *
     * @param address address of the store, without a cache
     * @return the writer
     * @throws SettingsException if the address names a cache, which needs credentials
     * @throws StoreException if the store cannot be reached
     */
    public static SignalWriter open(StoreAddress address) {
        address.checkServer();
        return new SignalWriter(Store.plain(address, ANSWER));
    }

    /**
     * Opens a writer of an ElastiCache serverless cache with TLS, IAM authentication and cluster mode. It needs
     * {@code software.amazon.awssdk:http-auth-aws}.
     *
     * @param address address of the store, with cache, user and region
     * @param credentials any provider of the AWS SDK; each new connection asks it and gets a fresh token
     * @return the writer
     * @throws SettingsException if the address names no cache, user or region
     * @throws StoreException if the store cannot be reached, or refuses the user
     */
    public static SignalWriter open(StoreAddress address, IdentityProvider<? extends AwsCredentialsIdentity> credentials) {
        address.checkCache();
        return new SignalWriter(Store.cache(address, new IamToken(address, credentials, Clock.systemUTC()), ANSWER));
    }

    /** Opens a writer of a cluster without TLS and users, for tests. */
    static SignalWriter cluster(StoreAddress address) {
        return new SignalWriter(Store.cluster(address, ANSWER));
    }

    /**
     * Writes a signal without waiting.
     *
     * @param signal the signal
     * @return true if the store holds the signal now, false if it has an equal or newer version. It fails with a
     *     {@link StoreException} if the store gives no answer; the write may have happened, and repeating it is safe.
     * @throws InvalidSignalException if name, key or version are out of bounds
     */
    public CompletableFuture<Boolean> writeAsync(SignalRecord signal) {
        signal.check();
        return store.run(
                        Script.WRITE_IF_NEWER,
                        SignalRecord.storageKey(signal.name(), signal.key()),
                        Long.toString(signal.version()),
                        signal.toJson(),
                        Long.toString(signal.expires().getEpochSecond()))
                .handle((written, error) -> {
                    if (error != null) {
                        throw Store.failure(error);
                    }
                    return written == 1;
                })
                .toCompletableFuture();
    }

    /** Closes all connections. Writes without an answer fail. */
    @Override
    public void close() {
        store.close();
    }
}
