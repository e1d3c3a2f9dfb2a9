package inferenceblueprints.local;

import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.flink.client.program.PackagedProgram;
import org.apache.flink.client.program.PackagedProgramUtils;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.ExternalizedCheckpointRetention;
import org.apache.flink.configuration.GlobalConfiguration;
import org.apache.flink.configuration.JobManagerOptions;
import org.apache.flink.configuration.MetricOptions;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.core.plugin.PluginUtils;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.runtime.jobmaster.JobResult;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;

/**
 * Runs the jar of a job in a Flink cluster inside this process.
 *
 * <p>{@code JobRunner JAR[:MORE_JARS] CLASS CHECKPOINT_FOLDER CHECKPOINT_MILLIS PARALLELISM [ARGUMENT...]} If the folder has a
 * complete checkpoint, the job goes on from the newest, as Managed Service for Apache Flink does after a failure. Like every
 * Flink cluster, it reads the folders FLINK_CONF_DIR and FLINK_PLUGINS_DIR, if the environment names them.
 */
public final class JobRunner {
    private static final int FIXED = 5;
    private static final Duration RESTART_DELAY = Duration.ofSeconds(1);
    /** How old the counters may be that the cluster's REST API returns. */
    private static final Duration METRICS_INTERVAL = Duration.ofMillis(500);

    private JobRunner() {}

    /**
     * Runs the job until it ends, which a job that reads topics does only by a failure.
     *
     * @param arguments see the class
     * @throws Exception if the job cannot start, or ends
     */
    public static void main(String[] arguments) throws Exception {
        Path checkpoints = Path.of(arguments[2]);
        int parallelism = Integer.parseInt(arguments[4]);
        Configuration settings = settings(checkpoints, Long.parseLong(arguments[3]));
        FileSystem.initialize(settings, PluginUtils.createPluginManagerFromRootFolder(settings));
        Optional<Path> newest = newest(checkpoints);
        JobGraph job = job(arguments, settings, parallelism, newest);
        MiniClusterConfiguration cluster = new MiniClusterConfiguration.Builder()
                .setConfiguration(settings)
                .setNumTaskManagers(1)
                .setNumSlotsPerTaskManager(parallelism)
                .build();
        MiniCluster flink = new MiniCluster(cluster);
        flink.start();
        flink.submitJob(job).get();
        System.out.println("flink at " + flink.getRestAddress().get() + " runs job " + job.getJobID()
                + newest.map(path -> " from checkpoint " + path).orElse(" from its beginning"));
        JobResult result = flink.requestJobResult(job.getJobID()).get();
        result.getSerializedThrowable().ifPresent(Throwable::printStackTrace);
        flink.closeAsync().get();
        System.exit(1);
    }

    private static JobGraph job(String[] arguments, Configuration settings, int parallelism, Optional<Path> newest)
            throws Exception {
        String[] jars = arguments[0].split(File.pathSeparator);
        List<URL> more = new ArrayList<>();
        for (String jar : List.of(jars).subList(1, jars.length)) {
            more.add(Path.of(jar).toUri().toURL());
        }
        SavepointRestoreSettings restore = newest.map(path -> SavepointRestoreSettings.forPath(path.toString()))
                .orElse(SavepointRestoreSettings.none());
        try (PackagedProgram program = PackagedProgram.newBuilder()
                .setJarFile(new File(jars[0]))
                .setUserClassPaths(more)
                .setEntryPointClassName(arguments[1])
                .setConfiguration(settings)
                .setSavepointRestoreSettings(restore)
                .setArguments(List.of(arguments).subList(FIXED, arguments.length).toArray(String[]::new))
                .build()) {
            JobGraph job = PackagedProgramUtils.createJobGraph(program, settings, parallelism, false);
            job.setSavepointRestoreSettings(restore);
            return job;
        }
    }

    private static Configuration settings(Path checkpoints, long millis) {
        Configuration settings = GlobalConfiguration.loadConfiguration();
        for (var address : List.of(JobManagerOptions.BIND_HOST, TaskManagerOptions.BIND_HOST, RestOptions.BIND_ADDRESS)) {
            settings.set(address, "127.0.0.1");
        }
        settings.set(RestOptions.ADDRESS, "127.0.0.1");
        settings.set(RestOptions.BIND_PORT, "0");
        // As in Managed Service for Apache Flink:
        // https://docs.aws.amazon.com/managed-flink/latest/java/reference-flink-settings.title.html#reference-defaults-state-backend
        settings.set(StateBackendOptions.STATE_BACKEND, "rocksdb");
        settings.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, true);
        settings.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofMillis(millis));
        settings.set(CheckpointingOptions.CHECKPOINT_STORAGE, "filesystem");
        settings.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, checkpoints.toUri().toString());
        settings.set(
                CheckpointingOptions.EXTERNALIZED_CHECKPOINT_RETENTION,
                ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION);
        settings.set(MetricOptions.METRIC_FETCHER_UPDATE_INTERVAL, METRICS_INTERVAL);
        settings.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, Integer.MAX_VALUE);
        settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, RESTART_DELAY);
        return settings;
    }

    /** Returns the newest complete checkpoint: one is complete once it has its metadata. */
    private static Optional<Path> newest(Path checkpoints) throws IOException {
        Files.createDirectories(checkpoints);
        try (Stream<Path> files = Files.walk(checkpoints)) {
            return files.filter(file -> file.endsWith("_metadata"))
                    .max(Comparator.comparing(JobRunner::written))
                    .map(Path::getParent);
        }
    }

    private static java.nio.file.attribute.FileTime written(Path file) {
        try {
            return Files.getLastModifiedTime(file);
        } catch (IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }
}
