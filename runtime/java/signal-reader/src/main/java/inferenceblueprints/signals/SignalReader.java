package inferenceblueprints.signals;

import io.lettuce.core.RedisException;
import java.time.Clock;
import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import software.amazon.awssdk.identity.spi.AwsCredentialsIdentity;
import software.amazon.awssdk.identity.spi.IdentityProvider;

/**
 * Reads the newest values. Threads share one reader; open it once per process. It caches nothing: the store deletes a signal
 * when it expires.
 *
 * <pre>{@code
 * SignalReader reader = SignalReader.open(StoreAddress.read(System.getenv()), DefaultCredentialsProvider.create());
 * Optional<SignalRecord> intent = reader.get("intent", "shopper-1");
 * }</pre>
 */
public final class SignalReader implements AutoCloseable {
    /** Limit for an answer, as in the Python package. */
    private static final Duration ANSWER = Duration.ofMillis(100);

    private final Store store;

    private SignalReader(Store store) {
        this.store = store;
    }

    /**
     * Opens a reader of a server without TLS and users, such as one on this machine.
     *
     * @param address address of the store, without a cache
     * @return the reader
     * @throws SettingsException if the address names a cache, which needs credentials
     * @throws StoreException if the store cannot be reached
     */
    public static SignalReader open(StoreAddress address) {
        return open(address, ANSWER);
    }

    /**
     * Opens a reader of a server without TLS and users that waits for answers as long as the caller says.
     *
     * @param address address of the store, without a cache
     * @param answer limit for an answer; without it, 100 ms
     * @return the reader
     * @throws SettingsException if the address names a cache, which needs credentials
     * @throws StoreException if the store cannot be reached
     */
    public static SignalReader open(StoreAddress address, Duration answer) {
        address.checkServer();
        return new SignalReader(Store.plain(address, answer));
    }

    /**
     * Opens a reader of an ElastiCache serverless cache with TLS, IAM authentication and cluster mode. It needs
     * {@code software.amazon.awssdk:http-auth-aws}.
     *
     * @param address address of the store, with cache, user and region
     * @param credentials any provider of the AWS SDK; each new connection asks it and gets a fresh token
     * @return the reader
     * @throws SettingsException if the address names no cache, user or region
     * @throws StoreException if the store cannot be reached, or refuses the user
     */
    public static SignalReader open(
            StoreAddress address, IdentityProvider<? extends AwsCredentialsIdentity> credentials) {
        return open(address, credentials, ANSWER);
    }

    /**
     * Opens a reader of a cache that waits for answers as long as the caller says.
     *
     * @param address address of the store, with cache, user and region
     * @param credentials any provider of the AWS SDK
     * @param answer limit for an answer
     * @return the reader
     * @throws SettingsException if the address names no cache, user or region
     * @throws StoreException if the store cannot be reached, or refuses the user
     */
    public static SignalReader open(
            StoreAddress address, IdentityProvider<? extends AwsCredentialsIdentity> credentials, Duration answer) {
        address.checkCache();
        IamToken token = new IamToken(address, credentials, Clock.systemUTC());
        return new SignalReader(Store.cache(address, token, answer));
    }

    /** Opens a reader of a cluster without TLS and users, for tests. */
    static SignalReader cluster(StoreAddress address, Duration answer) {
        return new SignalReader(Store.cluster(address, answer));
    }

    /**
     * Reads the newest value of a key in one round trip.
     *
     * @param name name of the signal
     * @param key key of the signal
     * @return the signal; empty if it is missing or has expired
     * @throws InvalidSignalException if the name is not valid, or the stored record is not a signal
     * @throws StoreException if there is no answer
     */
    public Optional<SignalRecord> get(String name, String key) {
        return await(getAsync(name, key));
    }

    /**
     * Reads the newest value of a key without waiting.
     *
     * @param name name of the signal
     * @param key key of the signal
     * @return the signal; it fails like {@link #get}
     * @throws InvalidSignalException if the name is not valid
     */
    public CompletableFuture<Optional<SignalRecord>> getAsync(String name, String key) {
        SignalRecord.checkName(name);
        return read(name, key).toCompletableFuture();
    }

    /**
     * Reads the newest values of many keys. The reads share connections and do not wait for each other.
     *
     * @param name name of the signals
     * @param keys keys of the signals
     * @return the signals by key, in the order of the keys; keys without a value are left out
     * @throws InvalidSignalException if the name is not valid, or a stored record is not a signal
     * @throws StoreException if there is no answer
     */
    public Map<String, SignalRecord> getMany(String name, Collection<String> keys) {
        return await(getManyAsync(name, keys));
    }

    /**
     * Reads the newest values of many keys without waiting.
     *
     * @param name name of the signals
     * @param keys keys of the signals
     * @return the signals by key; it fails like {@link #getMany}
     * @throws InvalidSignalException if the name is not valid
     */
    public CompletableFuture<Map<String, SignalRecord>> getManyAsync(String name, Collection<String> keys) {
        SignalRecord.checkName(name);
        Map<String, CompletableFuture<Optional<SignalRecord>>> reads = new LinkedHashMap<>();
        for (String key : keys) {
            reads.computeIfAbsent(key, each -> read(name, each).toCompletableFuture());
        }
        CompletableFuture<?>[] all = reads.values().toArray(CompletableFuture[]::new);
        return CompletableFuture.allOf(all).thenApply(done -> {
            Map<String, SignalRecord> found = new LinkedHashMap<>();
            reads.forEach((key, read) -> read.join().ifPresent(signal -> found.put(key, signal)));
            return found;
        });
    }

    private CompletionStage<Optional<SignalRecord>> read(String name, String key) {
        return store.read(SignalRecord.storageKey(name, key), "d").handle((stored, error) -> {
            if (error != null) {
                throw Store.failure(error);
            }
            return Optional.ofNullable(stored).map(text -> SignalRecord.read(name, key, text));
        });
    }

    private static <T> T await(CompletableFuture<T> read) {
        try {
            return read.get();
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
            throw new StoreException(StoreException.Reason.UNREACHABLE, "the thread was interrupted", stop);
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            while (cause instanceof CompletionException && cause.getCause() != null) {
                cause = cause.getCause();
            }
            if (cause instanceof InvalidSignalException wrong) {
                throw wrong;
            }
            if (cause instanceof StoreException known) {
                throw known;
            }
            throw new RedisException(cause);
        }
    }

    /** Closes all connections. */
    @Override
    public void close() {
        store.close();
    }
}
