package inferenceblueprints.enrichment;

/**
 * A record as Kafka has it.
 *
 * @param topic its topic
 * @param partition its partition
 * @param offset its offset
 * @param value its bytes; empty if it has none
 */
public record KafkaRecord(String topic, int partition, long offset, byte[] value) {}
