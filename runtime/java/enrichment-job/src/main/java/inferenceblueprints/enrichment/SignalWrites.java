package inferenceblueprints.enrichment;

import inferenceblueprints.signals.SignalRecord;
import inferenceblueprints.signals.SignalWriter;
import inferenceblueprints.signals.StoreAddress;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider;
import software.amazon.awssdk.regions.providers.DefaultAwsRegionProviderChain;

/** Writes answers as signals. */
final class SignalWrites implements AutoCloseable {
    private final JobConfiguration.Signal signal;
    private final String model;
    private final ModelCalls calls;
    private final SignalWriter writer;

    private SignalWrites(JobConfiguration configuration, SignalWriter writer) {
        signal = configuration.signal();
        model = configuration.request().model();
        calls = new ModelCalls(configuration);
        this.writer = writer;
    }

    static SignalWrites open(JobConfiguration configuration) {
        JobConfiguration.Store store = configuration.signal().store();
        if (store.authentication().equals("none")) {
            return new SignalWrites(configuration, SignalWriter.open(address(store, Optional.empty())));
        }
        String region = store.region() == null
                ? new DefaultAwsRegionProviderChain().getRegion().id()
                : store.region();
        return new SignalWrites(
                configuration,
                SignalWriter.open(
                        address(store, Optional.of(region)),
                        DefaultCredentialsProvider.builder().build()));
    }

    private static StoreAddress address(JobConfiguration.Store store, Optional<String> region) {
        return new StoreAddress(
                store.host(),
                store.port(),
                Optional.ofNullable(store.cacheName()),
                Optional.ofNullable(store.user()),
                region,
                Optional.empty());
    }

    /** Writes an answer. It is true unless the store has an equal or newer version. */
    CompletableFuture<Boolean> write(Result result) {
        Instant time = Instant.ofEpochMilli(result.time());
        return writer.writeAsync(new SignalRecord(
                signal.name(),
                result.prompt().key(),
                result.text(),
                result.prompt().version(),
                model,
                calls.promptHash(result.prompt()),
                time,
                time.plusSeconds(signal.ttlSeconds())));
    }

    @Override
    public void close() {
        writer.close();
    }
}
