package inferenceblueprints.enrichment;

import io.lettuce.core.RedisClient;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.api.StatefulRedisConnection;
import java.time.Duration;
import java.util.concurrent.CompletionStage;

/** Writes answers as signals. */
final class SignalWrites implements AutoCloseable {
    private static final String SCRIPT = "local version = redis.call('HGET', KEYS[1], 'v')\n"
            + "if version and tonumber(version) >= tonumber(ARGV[1]) then return 0 end\n"
            + "redis.call('HSET', KEYS[1], 'v', ARGV[1], 'd', ARGV[2])\n"
            + "redis.call('EXPIREAT', KEYS[1], ARGV[3])\nreturn 1\n";
    private final RedisClient client;
    private final StatefulRedisConnection<String, String> connection;
    private final JobConfiguration configuration;
    private final ModelCalls calls;

    private SignalWrites(JobConfiguration configuration) {
        this.configuration = configuration;
        calls = new ModelCalls(configuration);
        JobConfiguration.Store store = configuration.signal().store();
        client = RedisClient.create("redis://" + store.host() + ":" + store.port());
        connection = client.connect();
    }

    static SignalWrites open(JobConfiguration configuration) {
        return new SignalWrites(configuration);
    }

    CompletionStage<?> write(Result result) {
        long time = result.time() / 1000;
        long expires = time + configuration.signal().ttlSeconds();
        String record = new com.fasterxml.jackson.databind.json.JsonMapper()
                .createObjectNode()
                .put("value", result.text())
                .put("version", result.prompt().version())
                .put("model", configuration.request().model())
                .put("promptHash", calls.promptHash(result.prompt()))
                .put("time", time)
                .put("expires", expires)
                .toString();
        String key = "signal:" + configuration.signal().name() + ":" + result.prompt().key();
        return connection.async().<Long>eval(
                SCRIPT,
                ScriptOutputType.INTEGER,
                new String[] {key},
                Long.toString(result.prompt().version()),
                record,
                Long.toString(expires));
    }

    @Override
    public void close() {
        connection.close();
        client.shutdown(Duration.ZERO, Duration.ofSeconds(2));
    }
}
