package inferenceblueprints.enrichment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.json.JsonMapper;
import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;

/** The request of https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html. */
class SecretValueTest {
    private static final String ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:keys-AbCdEf";

    private HttpServer server;
    private Headers headers;
    private String asked;
    private int status = 200;
    private String answer = "{\"ARN\":\"" + ARN + "\",\"SecretString\":\"{}\"}";

    @BeforeEach
    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
        server.createContext("/", exchange -> {
            headers = exchange.getRequestHeaders();
            asked = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
            byte[] body = answer.getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(status, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }

    @AfterEach
    void stop() {
        server.stop(0);
    }

    private SecretValue value() {
        URI address = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/");
        return new SecretValue(
                ARN, address, StaticCredentialsProvider.create(AwsBasicCredentials.create("AKIAEXAMPLE", "secret")));
    }

    @Test
    void theRequestIsSignedAndItsAnswerIsTheValue() throws Exception {
        assertEquals("{}", value().call());
        assertEquals(ARN, JsonMapper.builder().build().readTree(asked).get("SecretId").textValue());
        assertEquals("secretsmanager.GetSecretValue", headers.getFirst("X-Amz-Target"));
        assertEquals("application/x-amz-json-1.1", headers.getFirst("Content-Type"));
        String signature = headers.getFirst("Authorization");
        assertTrue(signature.contains("/eu-west-1/secretsmanager/aws4_request"), signature);
        assertTrue(signature.contains("x-amz-target"), signature);
    }

    @Test
    void aRefusalSaysWhy() {
        status = 400;
        answer = "{\"__type\":\"ResourceNotFoundException\",\"Message\":\"can't find AWSCURRENT\"}";
        IOException error = assertThrows(IOException.class, () -> value().call());
        assertEquals(
                "Secrets Manager answers 400 ResourceNotFoundException can't find AWSCURRENT", error.getMessage());
    }

    @Test
    void aSecretWithoutTextIsAnError() {
        answer = "{\"SecretBinary\":\"aWJr\"}";
        assertTrue(assertThrows(IOException.class, () -> value().call()).getMessage().contains("no text"));
    }

    /** https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html */
    @Test
    void theAddressIsThatOfTheRegionUnlessTheEnvironmentHasAnother() {
        assertEquals(
                URI.create("https://secretsmanager.eu-west-1.amazonaws.com/"),
                SecretValue.endpoint("eu-west-1", Map.of("AWS_ENDPOINT_URL", "")));
        assertEquals(
                URI.create("https://secretsmanager.cn-north-1.amazonaws.com.cn/"),
                SecretValue.endpoint("cn-north-1", Map.of()));
        assertEquals(
                URI.create("http://127.0.0.1:4566/"),
                SecretValue.endpoint("eu-west-1", Map.of("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")));
        assertEquals(
                URI.create("http://own/"),
                SecretValue.endpoint(
                        "eu-west-1",
                        Map.of("AWS_ENDPOINT_URL", "http://all/", "AWS_ENDPOINT_URL_SECRETS_MANAGER", "http://own/")));
    }
}
