package inferenceblueprints.endpoint;

import static inferenceblueprints.endpoint.Calls.QUESTION;
import static inferenceblueprints.endpoint.Calls.client;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import inferenceblueprints.endpoint.aws.SigV4Authentication;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.identity.spi.AwsSessionCredentialsIdentity;
import software.amazon.awssdk.identity.spi.IdentityProvider;
import software.amazon.awssdk.identity.spi.ResolveIdentityRequest;

/** The signature that the server computes is the one that it got. */
class SigV4Test {
    private static final Pattern AUTHORIZATION =
            Pattern.compile("AWS4-HMAC-SHA256 Credential=([^/]+)/(.+), SignedHeaders=(\\S+), Signature=(\\w+)");

    private static final class Credentials implements IdentityProvider<AwsSessionCredentialsIdentity> {
        @Override
        public Class<AwsSessionCredentialsIdentity> identityType() {
            return AwsSessionCredentialsIdentity.class;
        }

        @Override
        public CompletableFuture<AwsSessionCredentialsIdentity> resolveIdentity(ResolveIdentityRequest request) {
            return CompletableFuture.completedFuture(AwsSessionCredentialsIdentity.create("AKID", "secret", "session"));
        }
    }

    @Test
    void theSignatureCoversAddressHeadersAndBody() throws Exception {
        BlockingQueue<HostileServer.Request> seen = new LinkedBlockingQueue<>();
        SigV4Authentication authentication = new SigV4Authentication(new Credentials(), "us-west-2", "execute-api");
        try (HostileServer server = new HostileServer(request -> {
                    seen.add(request);
                    request.answer("blue");
                });
                EndpointClient client = client(server, builder -> builder.authentication(authentication))) {
            client.send(QUESTION.withSession("s-1"));
        }
        HostileServer.Request request = seen.take();
        assertEquals("session", request.headers.get("x-amz-security-token"));
        Matcher parts = AUTHORIZATION.matcher(request.headers.get("authorization"));
        assertTrue(parts.matches(), request.headers.get("authorization"));
        String scope = parts.group(2);
        assertTrue(scope.endsWith("/us-west-2/execute-api/aws4_request"), scope);
        List<String> names = List.of(parts.group(3).split(";"));
        assertTrue(names.containsAll(List.of("host", "x-amz-date", "x-amz-security-token", "x-dynamo-session-id")));
        List<String> canonical = new ArrayList<>(List.of("POST", request.path, ""));
        names.forEach(name -> canonical.add(name + ":" + request.headers.get(name)));
        canonical.addAll(List.of("", parts.group(3), hash(request.body)));
        String text = "AWS4-HMAC-SHA256\n" + request.headers.get("x-amz-date") + "\n" + scope + "\n"
                + hash(String.join("\n", canonical));
        byte[] key = "AWS4secret".getBytes(StandardCharsets.UTF_8);
        for (String part : scope.split("/")) {
            key = sign(key, part);
        }
        assertEquals(HexFormat.of().formatHex(sign(key, text)), parts.group(4));
    }

    private static byte[] sign(byte[] key, String text) throws Exception {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String hash(String text) throws Exception {
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
        return HexFormat.of().formatHex(digest);
    }
}
