package inferenceblueprints.signals;

import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisCredentialsProvider;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.SslOptions;
import io.lettuce.core.SslVerifyMode;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.lettuce.core.protocol.ProtocolVersion;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;

/** Connections to the store. The only class that knows whether it is one server or a cluster. */
final class Store implements AutoCloseable {
    private static final Duration CONNECT = Duration.ofMillis(500);

    private final AbstractRedisClient client;
    private final RedisClusterAsyncCommands<String, String> commands;

    private Store(AbstractRedisClient client, RedisClusterAsyncCommands<String, String> commands) {
        this.client = client;
        this.commands = commands;
    }

    static Store plain(StoreAddress address, Duration answer) {
        RedisClient client = RedisClient.create(RedisURI.create(address.host(), address.port()));
        client.setOptions(ClientOptions.builder()
                .protocolVersion(ProtocolVersion.RESP2)
                .socketOptions(SocketOptions.builder().connectTimeout(CONNECT).build())
                .timeoutOptions(TimeoutOptions.enabled(answer))
                .build());
        return opened(client, () -> client.connect().async());
    }

    static Store cluster(StoreAddress address, Duration answer) {
        return cluster(RedisURI.create(address.host(), address.port()), SslOptions.create(), answer);
    }

    static Store cache(StoreAddress address, RedisCredentialsProvider token, Duration answer) {
        RedisURI uri = RedisURI.builder()
                .withHost(address.host())
                .withPort(address.port())
                .withSsl(true)
                .withVerifyPeer(SslVerifyMode.FULL)
                .withAuthentication(token)
                .build();
        SslOptions.Builder tls = SslOptions.builder().jdkSslProvider();
        address.authority().ifPresent(file -> tls.trustManager(file.toFile()));
        return cluster(uri, tls.build(), answer);
    }

    private static Store cluster(RedisURI uri, SslOptions tls, Duration answer) {
        RedisClusterClient client = RedisClusterClient.create(uri);
        client.setOptions(ClusterClientOptions.builder()
                .protocolVersion(ProtocolVersion.RESP2)
                .sslOptions(tls)
                .socketOptions(SocketOptions.builder().connectTimeout(CONNECT).build())
                .timeoutOptions(TimeoutOptions.enabled(answer))
                .build());
        return opened(client, () -> client.connect().async());
    }

    private interface Opening {
        RedisClusterAsyncCommands<String, String> open();
    }

    private static Store opened(AbstractRedisClient client, Opening opening) {
        try {
            return new Store(client, opening.open());
        } catch (RedisException error) {
            client.shutdown();
            throw failure(error);
        }
    }

    CompletionStage<String> read(String key, String field) {
        return commands.hget(key, field);
    }

    /** Runs a script for a key and returns its number. The server finds a script by its digest after it was sent once. */
    CompletionStage<Long> run(Script script, String key, String... values) {
        String[] keys = {key};
        return commands.<Long>evalsha(script.digest(), ScriptOutputType.INTEGER, keys, values)
                .exceptionallyCompose(error -> cause(error) instanceof RedisNoScriptException
                        ? commands.eval(script.text(), ScriptOutputType.INTEGER, keys, values)
                        : CompletableFuture.failedStage(error));
    }

    private static Throwable cause(Throwable error) {
        return error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
    }

    /** Tells a refusal from silence: an answer of the server anywhere among the causes decides. */
    static StoreException failure(Throwable error) {
        RedisCommandExecutionException answer = answer(error);
        if (answer == null) {
            return new StoreException(StoreException.Reason.UNREACHABLE, words(cause(error)), error);
        }
        String kind = words(answer).split(" ")[0].toUpperCase(Locale.ROOT);
        boolean refused = kind.equals("WRONGPASS") || kind.equals("NOAUTH") || kind.equals("NOPERM");
        boolean silent = kind.equals("CLUSTERDOWN") || kind.equals("LOADING");
        StoreException.Reason reason = refused
                ? StoreException.Reason.REFUSED
                : silent ? StoreException.Reason.UNREACHABLE : StoreException.Reason.FAILED;
        return new StoreException(reason, words(answer), error);
    }

    private static String words(Throwable error) {
        return String.valueOf(error.getMessage()).replaceAll("\\s+", " ");
    }

    /** A cluster client keeps the errors of each node it tried as suppressed ones. */
    private static RedisCommandExecutionException answer(Throwable error) {
        if (error == null || error instanceof RedisCommandExecutionException) {
            return (RedisCommandExecutionException) error;
        }
        RedisCommandExecutionException found = answer(error.getCause());
        for (Throwable each : error.getSuppressed()) {
            found = found == null ? answer(each) : found;
        }
        return found;
    }

    @Override
    public void close() {
        client.shutdown(Duration.ZERO, Duration.ofSeconds(2));
    }
}
