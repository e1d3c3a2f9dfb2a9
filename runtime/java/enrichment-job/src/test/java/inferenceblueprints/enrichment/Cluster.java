package inferenceblueprints.enrichment;

import java.nio.file.Path;
import java.time.Duration;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.JobManagerOptions;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.executiongraph.AccessExecutionVertex;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** A Flink cluster in this process with two task managers. All tests share it. */
final class Cluster {
    private static final int SLOTS = 4;

    private final MiniCluster cluster;
    private int killed;

    Cluster(Path folder) throws Exception {
        Configuration settings = new Configuration();
        settings.set(RestOptions.BIND_ADDRESS, "127.0.0.1");
        settings.set(RestOptions.ADDRESS, "127.0.0.1");
        settings.set(RestOptions.BIND_PORT, "0");
        settings.set(JobManagerOptions.BIND_HOST, "127.0.0.1");
        settings.set(TaskManagerOptions.BIND_HOST, "127.0.0.1");
        settings.set(TaskManagerOptions.HOST, "127.0.0.1");
        settings.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(32));
        settings.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.ofMebiBytes(32));
        settings.set(TaskManagerOptions.MANAGED_MEMORY_SIZE, MemorySize.ofMebiBytes(32));
        settings.set(RestOptions.ENABLE_FLAMEGRAPH, false);
        settings.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, folder.resolve("checkpoints").toUri().toString());
        cluster = new MiniCluster(new MiniClusterConfiguration.Builder()
                .setConfiguration(settings)
                .setNumTaskManagers(2)
                .setNumSlotsPerTaskManager(SLOTS)
                .build());
        cluster.start();
    }

    /** Starts the very graph of the job; {@code savepoint} is null for an empty beginning. */
    JobID start(JobConfiguration configuration, int parallelism, String savepoint, Duration checkpoints) throws Exception {
        Configuration settings = new Configuration();
        // As in Managed Service for Apache Flink:
        // https://docs.aws.amazon.com/managed-flink/latest/java/reference-flink-settings.title.html#reference-defaults-state-backend
        settings.set(StateBackendOptions.STATE_BACKEND, "rocksdb");
        settings.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, true);
        settings.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, checkpoints);
        // A minute and five seconds in the service.
        settings.set(CheckpointingOptions.MIN_PAUSE_BETWEEN_CHECKPOINTS, checkpoints.dividedBy(12));
        settings.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, Integer.MAX_VALUE);
        settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofMillis(200));
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(settings);
        environment.setParallelism(parallelism);
        EnrichmentJob.build(environment, configuration);
        JobGraph graph = environment.getStreamGraph().getJobGraph();
        if (savepoint != null) {
            graph.setSavepointRestoreSettings(SavepointRestoreSettings.forPath(savepoint, false));
        }
        cluster.submitJob(graph).get();
        return graph.getJobID();
    }

    JobStatus status(JobID job) throws Exception {
        return cluster.getJobStatus(job).get();
    }

    /** Kills a task manager as a lost machine, starts another one, and waits until the job runs again. */
    void replaceTaskManager(JobID job) throws Exception {
        int before = attempt(job);
        killTaskManager();
        startTaskManager();
        Rig.await(() -> attempt(job) > before ? "" : "the job restarts; is its parallelism above " + SLOTS + "?");
    }

    /** Kills the oldest task manager as a lost machine. */
    void killTaskManager() throws Exception {
        cluster.terminateTaskManager(killed).get();
        killed++;
    }

    void startTaskManager() throws Exception {
        cluster.startTaskManager();
    }

    private int attempt(JobID job) throws Exception {
        int highest = 0;
        for (AccessExecutionVertex each : cluster.getExecutionGraph(job).get().getAllExecutionVertices()) {
            highest = Math.max(highest, each.getCurrentExecutionAttempt().getAttemptNumber());
        }
        return highest;
    }

    String savepoint(JobID job, Path folder) throws Exception {
        return cluster.triggerSavepoint(job, folder.toUri().toString(), false, SavepointFormatType.CANONICAL).get();
    }

    String stop(JobID job, Path folder) throws Exception {
        return cluster.stopWithSavepoint(job, folder.toUri().toString(), false, SavepointFormatType.CANONICAL).get();
    }

    void cancel(JobID job) throws Exception {
        cluster.cancelJob(job).get();
        while (!cluster.getJobStatus(job).get().isGloballyTerminalState()) {
            Thread.sleep(20);
        }
    }
}
