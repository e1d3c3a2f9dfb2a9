package inferenceblueprints.enrichment;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import inferenceblueprints.endpoint.aws.SigV4Authentication;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider;
import software.amazon.awssdk.identity.spi.AwsCredentialsIdentity;
import software.amazon.awssdk.identity.spi.IdentityProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.regions.ServiceMetadata;

/**
 * The value of a secret in AWS Secrets Manager. One signed request needs no module of the AWS SDK that the job does not have:
 * https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html
 */
final class SecretValue implements Callable<String> {
    private static final String SERVICE = "secretsmanager";
    /** Addresses of another server, as all AWS SDKs read them. */
    private static final String[] ADDRESSES = {"AWS_ENDPOINT_URL_SECRETS_MANAGER", "AWS_ENDPOINT_URL"};

    private static final int OK = 200;
    private static final Duration CONNECT = Duration.ofSeconds(2);
    private static final Duration ANSWER = Duration.ofSeconds(10);
    private static final JsonMapper MAPPER = JsonMapper.builder().build();

    private final byte[] body;
    private final URI endpoint;
    private final SigV4Authentication authentication;
    private final HttpClient client = HttpClient.newBuilder().connectTimeout(CONNECT).build();

    SecretValue(String arn, URI endpoint, IdentityProvider<? extends AwsCredentialsIdentity> credentials) {
        body = MAPPER.createObjectNode().put("SecretId", arn).toString().getBytes(StandardCharsets.UTF_8);
        this.endpoint = endpoint;
        authentication = new SigV4Authentication(credentials, region(arn), SERVICE);
    }

    /** Returns the value of a secret, which is asked for with the role of the job. */
    static SecretValue of(String arn) {
        return new SecretValue(
                arn,
                endpoint(region(arn), System.getenv()),
                DefaultCredentialsProvider.builder().build());
    }

    private static String region(String arn) {
        return arn.split(":")[3];
    }

    static URI endpoint(String region, Map<String, String> environment) {
        String named = Stream.of(ADDRESSES)
                .map(environment::get)
                .filter(each -> each != null && !each.isEmpty())
                .findFirst()
                .orElseGet(() -> "https://" + ServiceMetadata.of(SERVICE).endpointFor(Region.of(region)));
        return URI.create(named + (named.endsWith("/") ? "" : "/"));
    }

    @Override
    public String call() throws IOException, InterruptedException {
        Map<String, String> headers = new HashMap<>(
                Map.of("Content-Type", "application/x-amz-json-1.1", "X-Amz-Target", SERVICE + ".GetSecretValue"));
        headers.putAll(authentication.headers(endpoint, Map.copyOf(headers), body));
        HttpRequest.Builder request = HttpRequest.newBuilder(endpoint).timeout(ANSWER);
        headers.forEach(request::header);
        HttpResponse<byte[]> answer = client.send(
                request.POST(HttpRequest.BodyPublishers.ofByteArray(body)).build(),
                HttpResponse.BodyHandlers.ofByteArray());
        JsonNode found = MAPPER.readTree(answer.body());
        JsonNode value = found.path("SecretString");
        if (answer.statusCode() != OK || !value.isTextual()) {
            String kind = found.path("__type").asText("no text");
            String message = found.path("message").asText(found.path("Message").asText());
            throw new IOException(("Secrets Manager answers " + answer.statusCode() + " " + kind + " " + message).strip());
        }
        return value.textValue();
    }
}
