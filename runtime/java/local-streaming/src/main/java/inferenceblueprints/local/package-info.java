/** A Kafka broker and a Flink cluster for one machine. {@code make run} starts them for blueprints with streaming jobs. */
package inferenceblueprints.local;
