package inferenceblueprints.enrichment;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Uses those classes of the job's jar that only the cloud needs. tests/java starts it with the jar on the class path. */
final class JarProbe {
    private JarProbe() {}

    /** The only argument is a configuration with IAM authentication and addresses where nobody listens. */
    public static void main(String[] arguments) throws Exception {
        JobConfiguration configuration = JobConfiguration.read(Files.readString(Path.of(arguments[0])));
        System.out.println(JobConfiguration.class.getProtectionDomain().getCodeSource().getLocation());
        Templates.rendering(configuration.prompt());
        System.out.println("template");
        SharedClient.open(configuration.endpoint()).close();
        System.out.println("client");
        Properties settings = KafkaTopics.properties(configuration.kafka());
        settings.put("bootstrap.servers", configuration.kafka().bootstrapServers());
        new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer()).close();
        System.out.println(settings.get("sasl.mechanism"));
        try {
            SignalWrites.open(configuration).close();
        } catch (RuntimeException error) {
            System.out.println(error.getMessage().split(":")[0]);
        }
        System.exit(0);
    }
}
