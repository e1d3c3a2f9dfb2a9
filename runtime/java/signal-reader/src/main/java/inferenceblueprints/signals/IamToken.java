package inferenceblueprints.signals;

import io.lettuce.core.RedisCredentials;
import io.lettuce.core.RedisCredentialsProvider;
import java.time.Clock;
import java.time.Duration;
import java.util.Objects;
import reactor.core.publisher.Mono;
import software.amazon.awssdk.http.SdkHttpFullRequest;
import software.amazon.awssdk.http.SdkHttpMethod;
import software.amazon.awssdk.http.auth.aws.signer.AwsV4FamilyHttpSigner.AuthLocation;
import software.amazon.awssdk.http.auth.aws.signer.AwsV4HttpSigner;
import software.amazon.awssdk.http.auth.spi.signer.HttpSigner;
import software.amazon.awssdk.identity.spi.AwsCredentialsIdentity;
import software.amazon.awssdk.identity.spi.IdentityProvider;

/**
 * Gives each new connection the user and a fresh token. A token is a presigned request that is never sent; it is valid for
 * 15 minutes (https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/auth-iam.html).
 */
final class IamToken implements RedisCredentialsProvider {
    private static final Duration VALID = Duration.ofMinutes(15);
    private static final String SERVICE = "elasticache";

    private final AwsV4HttpSigner signer = AwsV4HttpSigner.create();
    private final StoreAddress address;
    private final IdentityProvider<? extends AwsCredentialsIdentity> credentials;
    private final Clock clock;

    IamToken(StoreAddress address, IdentityProvider<? extends AwsCredentialsIdentity> credentials, Clock clock) {
        this.address = address;
        this.credentials = Objects.requireNonNull(credentials, "credentials");
        this.clock = clock;
    }

    String sign() {
        String user = address.user().orElseThrow();
        SdkHttpFullRequest request = SdkHttpFullRequest.builder()
                .method(SdkHttpMethod.GET)
                .protocol("https")
                .host(address.cache().orElseThrow())
                .encodedPath("/")
                .putRawQueryParameter("Action", "connect")
                .putRawQueryParameter("User", user)
                .putRawQueryParameter("ResourceType", "ServerlessCache")
                .build();
        AwsCredentialsIdentity identity = credentials.resolveIdentity().join();
        String url = signer.sign(each -> each.identity(identity)
                        .request(request)
                        .putProperty(AwsV4HttpSigner.SERVICE_SIGNING_NAME, SERVICE)
                        .putProperty(AwsV4HttpSigner.REGION_NAME, address.region().orElseThrow())
                        .putProperty(AwsV4HttpSigner.AUTH_LOCATION, AuthLocation.QUERY_STRING)
                        .putProperty(AwsV4HttpSigner.EXPIRATION_DURATION, VALID)
                        .putProperty(HttpSigner.SIGNING_CLOCK, clock))
                .request()
                .getUri()
                .toString();
        return url.substring("https://".length());
    }

    @Override
    public Mono<RedisCredentials> resolveCredentials() {
        return Mono.fromSupplier(() -> RedisCredentials.just(address.user().orElseThrow(), sign()));
    }
}
