package inferenceblueprints.enrichment;

/**
 * A record as Kafka has it.
 *
 * @param partition its partition
 * @param offset its offset
 * @param value its bytes; empty if it has none
 */
public record KafkaRecord(int partition, long offset, byte[] value) {}
