package inferenceblueprints.endpoint.aws;

import inferenceblueprints.endpoint.Authentication;
import java.io.ByteArrayInputStream;
import java.net.URI;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import software.amazon.awssdk.http.SdkHttpFullRequest;
import software.amazon.awssdk.http.SdkHttpMethod;
import software.amazon.awssdk.http.SdkHttpRequest;
import software.amazon.awssdk.http.auth.aws.signer.AwsV4HttpSigner;
import software.amazon.awssdk.http.auth.spi.signer.SignedRequest;
import software.amazon.awssdk.identity.spi.AwsCredentialsIdentity;
import software.amazon.awssdk.identity.spi.IdentityProvider;

/**
 * Signs requests with Signature Version 4, for an endpoint behind API Gateway or another service that checks IAM. It needs
 * {@code software.amazon.awssdk:http-auth-aws}, whose signer it uses.
 *
 * <p>Credentials come from any provider of the AWS SDK, such as {@code DefaultCredentialsProvider}. Renewing them can block a
 * call; {@code asyncCredentialUpdateEnabled(true)} of the SDK's providers avoids it.
 */
public final class SigV4Authentication implements Authentication {
    // The JDK's client sets these itself.
    private static final Set<String> SET_BY_CLIENT = Set.of("host", "content-length");

    private final AwsV4HttpSigner signer = AwsV4HttpSigner.create();
    private final IdentityProvider<? extends AwsCredentialsIdentity> credentials;
    private final String region;
    private final String service;

    /**
     * Creates the authentication.
     *
     * @param credentials provider of credentials
     * @param region region of the service, such as {@code us-west-2}
     * @param service signing name of the service, such as {@code execute-api}
     */
    public SigV4Authentication(
            IdentityProvider<? extends AwsCredentialsIdentity> credentials, String region, String service) {
        this.credentials = Objects.requireNonNull(credentials, "credentials");
        this.region = Objects.requireNonNull(region, "region");
        this.service = Objects.requireNonNull(service, "service");
    }

    @Override
    public Map<String, String> headers(URI uri, Map<String, String> headers, byte[] body) {
        SdkHttpFullRequest.Builder request = SdkHttpFullRequest.builder().method(SdkHttpMethod.POST).uri(uri);
        headers.forEach(request::putHeader);
        AwsCredentialsIdentity identity = credentials.resolveIdentity().join();
        SignedRequest signed = signer.sign(each -> each.identity(identity)
                .request(request.build())
                .payload(() -> new ByteArrayInputStream(body))
                .putProperty(AwsV4HttpSigner.SERVICE_SIGNING_NAME, service)
                .putProperty(AwsV4HttpSigner.REGION_NAME, region));
        return added(signed.request(), headers);
    }

    private static Map<String, String> added(SdkHttpRequest signed, Map<String, String> before) {
        Map<String, String> added = new HashMap<>();
        for (Map.Entry<String, List<String>> each : signed.headers().entrySet()) {
            String name = each.getKey();
            if (!SET_BY_CLIENT.contains(name.toLowerCase(Locale.ROOT)) && !before.containsKey(name)) {
                added.put(name, String.join(",", each.getValue()));
            }
        }
        return added;
    }
}
