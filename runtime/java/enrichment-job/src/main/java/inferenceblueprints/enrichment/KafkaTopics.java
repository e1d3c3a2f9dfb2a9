package inferenceblueprints.enrichment;

import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.enumerator.subscriber.KafkaSubscriber;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** The topics of events and of dead letters. */
final class KafkaTopics {
    private KafkaTopics() {}

    /** Reads events. Without a snapshot it continues after the group's committed offsets, or at the oldest event. */
    static KafkaSource<KafkaRecord> events(JobConfiguration.Kafka kafka) {
        return KafkaSource.<KafkaRecord>builder()
                .setBootstrapServers(kafka.bootstrapServers())
                .setKafkaSubscriber(new Share(kafka))
                .setGroupId(kafka.group())
                .setStartingOffsets(OffsetsInitializer.committedOffsets(OffsetResetStrategy.EARLIEST))
                .setDeserializer(new Reading())
                .setProperties(properties(kafka))
                .setProperty("partition.discovery.interval.ms", "60000")
                .build();
    }

    /** Writes dead letters at least once: a checkpoint waits until the brokers have them. */
    static KafkaSink<Rejected> deadLetters(JobConfiguration configuration) {
        JobConfiguration.Kafka kafka = configuration.kafka();
        return KafkaSink.<Rejected>builder()
                .setBootstrapServers(kafka.bootstrapServers())
                .setDeliveryGuarantee(DeliveryGuarantee.AT_LEAST_ONCE)
                .setKafkaProducerConfig(properties(kafka))
                .setRecordSerializer(new Writing(configuration.name(), kafka))
                .build();
    }

    /** Settings of a client with IAM authentication (https://github.com/aws/aws-msk-iam-auth). */
    static Properties properties(JobConfiguration.Kafka kafka) {
        Properties properties = new Properties();
        if (kafka.authentication().equals("iam")) {
            properties.setProperty("security.protocol", "SASL_SSL");
            properties.setProperty("sasl.mechanism", "AWS_MSK_IAM");
            properties.setProperty("sasl.jaas.config", "software.amazon.msk.auth.iam.IAMLoginModule required;");
            properties.setProperty(
                    "sasl.client.callback.handler.class", "software.amazon.msk.auth.iam.IAMClientCallbackHandler");
        }
        return properties;
    }

    /**
     * The partitions that this application reads: all, or those of its shard. Of each topic, shard i of n has the partitions
     * i, i + n, i + 2n and so on. So each partition has one shard, also those that a topic gets later, which Flink asks for
     * once a minute; equal keys of several topics with equally many partitions reach the same shard.
     */
    static final class Share implements KafkaSubscriber {
        private static final long serialVersionUID = 1L;

        private final JobConfiguration.Kafka kafka;

        Share(JobConfiguration.Kafka kafka) {
            this.kafka = kafka;
        }

        @Override
        public Set<TopicPartition> getSubscribedTopicPartitions(AdminClient admin) {
            return own(KafkaSubscriber.getTopicListSubscriber(kafka.topics()).getSubscribedTopicPartitions(admin));
        }

        private Set<TopicPartition> own(Set<TopicPartition> all) {
            JobConfiguration.Shard shard = kafka.shard();
            return all.stream()
                    .filter(each -> shard == null || each.partition() % shard.count() == shard.index())
                    .collect(Collectors.toSet());
        }
    }

    private static final class Reading implements KafkaRecordDeserializationSchema<KafkaRecord> {
        private static final long serialVersionUID = 1L;

        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<KafkaRecord> records) {
            byte[] value = record.value() == null ? new byte[0] : record.value();
            records.collect(new KafkaRecord(record.topic(), record.partition(), record.offset(), value));
        }

        @Override
        public TypeInformation<KafkaRecord> getProducedType() {
            return TypeInformation.of(KafkaRecord.class);
        }
    }

    private static final class Writing implements KafkaRecordSerializationSchema<Rejected> {
        private static final long serialVersionUID = 1L;

        private final String job;
        private final JobConfiguration.Kafka kafka;

        Writing(String job, JobConfiguration.Kafka kafka) {
            this.job = job;
            this.kafka = kafka;
        }

        /** Sets no time: the topic's retention would count from an event's own time, and delete the letter at once. */
        @Override
        public ProducerRecord<byte[], byte[]> serialize(Rejected rejected, KafkaSinkContext context, Long timestamp) {
            byte[] key = rejected.key() == null ? null : rejected.key().getBytes(StandardCharsets.UTF_8);
            return new ProducerRecord<>(kafka.deadLetterTopic(), key, DeadLetters.record(job, kafka.topic(), rejected));
        }
    }
}
