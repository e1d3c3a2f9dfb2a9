package inferenceblueprints.endpoint;

import static inferenceblueprints.endpoint.Calls.QUESTION;
import static inferenceblueprints.endpoint.Calls.client;
import static inferenceblueprints.endpoint.Calls.fails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import inferenceblueprints.endpoint.RefreshingToken.Token;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** A token is fetched again in time, once, and an old one is used no longer than it is valid. */
class RefreshingTokenTest {
    private static final Duration LIFE = Duration.ofMinutes(5);

    /** A clock that the test moves. */
    private static final class Moving extends Clock {
        private Instant now = Instant.parse("2026-11-29T12:00:00Z");

        @Override
        public Instant instant() {
            return now;
        }

        @Override
        public ZoneId getZone() {
            return ZoneOffset.UTC;
        }

        @Override
        public Clock withZone(ZoneId zone) {
            return this;
        }
    }

    private final Moving clock = new Moving();
    private final Queue<Runnable> background = new ArrayDeque<>();
    private final AtomicInteger fetched = new AtomicInteger();
    private boolean fails;
    private final RefreshingToken token = new RefreshingToken(this::fetch, clock, background::add);

    private Token fetch() {
        int number = fetched.incrementAndGet();
        if (fails) {
            throw new IllegalArgumentException("the issuer is away");
        }
        return new Token("token-" + number, clock.now.plus(LIFE));
    }

    private void pass(Duration time) {
        clock.now = clock.now.plus(time);
    }

    @Test
    void theSourceIsAskedOnceWhileTheTokenIsFresh() {
        assertEquals(List.of("token-1", "token-1"), List.of(token.get(), token.get()));
        pass(Duration.ofSeconds(199));
        assertEquals("token-1", token.get());
        assertEquals(1, fetched.get());
        assertTrue(background.isEmpty());
    }

    @Test
    void aTokenIsReplacedInTheBackgroundAfterTwoThirdsOfItsLife() {
        token.get();
        pass(Duration.ofSeconds(200));
        // Many calls at that moment: one of them starts the refresh, and none waits.
        assertEquals(List.of("token-1", "token-1"), List.of(token.get(), token.get()));
        assertEquals(1, background.size());
        background.remove().run();
        assertEquals("token-2", token.get());
        assertTrue(background.isEmpty());
    }

    @Test
    void anOldTokenIsUsedWhileTheSourceFails() {
        token.get();
        fails = true;
        pass(Duration.ofSeconds(200));
        token.get();
        background.remove().run();
        assertEquals("token-1", token.get());
        assertTrue(background.isEmpty(), "the source is not asked again at once");
        pass(Duration.ofSeconds(5));
        assertEquals("token-1", token.get());
        fails = false;
        background.remove().run();
        assertEquals("token-3", token.get());
    }

    @Test
    void anExpiredTokenIsNeverSent() {
        token.get();
        pass(LIFE.minusSeconds(10));
        assertEquals("token-2", token.get());
        fails = true;
        pass(LIFE);
        IllegalStateException error = assertThrows(IllegalStateException.class, token::get);
        assertTrue(error.getMessage().contains("the issuer is away"), error.getMessage());
    }

    @Test
    void aTokenThatHasExpiredAlreadyIsAnErrorWithoutItsValue() {
        RefreshingToken late = new RefreshingToken(() -> new Token("secret", clock.now), clock, background::add);
        IllegalStateException error = assertThrows(IllegalStateException.class, late::get);
        assertTrue(error.getMessage().contains("Compare this machine's clock"));
        assertFalse(error.getMessage().contains("secret"));
        assertFalse(new Token("secret", clock.now).toString().contains("secret"));
    }

    @Test
    void severalThreadsWaitForOneFetch() throws Exception {
        CountDownLatch all = new CountDownLatch(8);
        RefreshingToken shared = new RefreshingToken(
                () -> {
                    all.await(20, TimeUnit.SECONDS);
                    return fetch();
                },
                clock,
                background::add);
        ExecutorService threads = Executors.newFixedThreadPool(8);
        try {
            List<Future<String>> answers = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                answers.add(threads.submit(() -> {
                    all.countDown();
                    return shared.get();
                }));
            }
            for (Future<String> each : answers) {
                assertEquals("token-1", each.get(20, TimeUnit.SECONDS));
            }
        } finally {
            threads.shutdownNow();
        }
        assertEquals(1, fetched.get());
    }

    @Test
    void eachAttemptSendsTheTokenOfItsTime() throws Exception {
        List<String> seen = new ArrayList<>();
        try (HostileServer server = new HostileServer(request -> {
                    seen.add(request.headers.get("authorization"));
                    request.answer("blue");
                });
                EndpointClient client = client(server, each -> each.authentication(Authentication.bearer(token)))) {
            client.send(QUESTION);
            pass(LIFE);
            client.send(QUESTION);
        }
        assertEquals(List.of("Bearer token-1", "Bearer token-2"), seen);
    }

    @Test
    void aCallWithoutATokenSaysWhy() throws Exception {
        fails = true;
        try (HostileServer server = new HostileServer(request -> request.answer("blue"));
                EndpointClient client = client(server, each -> each.authentication(Authentication.bearer(token)))) {
            RuntimeException error = assertThrows(RuntimeException.class, () -> client.send(QUESTION));
            assertTrue(error.toString().contains("the issuer is away"), error.toString());
        }
    }

    private static HostileServer takesOnly(String wanted, List<String> seen) throws Exception {
        return new HostileServer(request -> {
            String sent = request.headers.get("authorization");
            seen.add(sent);
            if (sent.equals("Bearer " + wanted)) {
                request.answer("blue");
            } else {
                request.answer(401, "", "{\"error\":{\"message\":\"no\",\"code\":\"invalid_api_key\"}}");
            }
        });
    }

    /** A token may end before its time: its issuer has withdrawn it. */
    @Test
    void aRefusedTokenIsReplacedAndTheNextOneIsSentAtOnce() throws Exception {
        List<String> seen = new ArrayList<>();
        try (HostileServer server = takesOnly("token-2", seen);
                EndpointClient client = client(
                        server, each -> each.maxAttempts(1).authentication(Authentication.bearer(token)))) {
            token.get();
            pass(Duration.ofSeconds(5));
            assertEquals("blue", client.send(QUESTION).text());
        }
        assertEquals(List.of("Bearer token-1", "Bearer token-2"), seen);
    }

    @Test
    void anEndpointThatRefusesEveryTokenGetsOneMoreRequestAndTheSourceIsLeftAlone() throws Exception {
        List<String> seen = new ArrayList<>();
        try (HostileServer server = takesOnly("none", seen);
                EndpointClient client = client(server, each -> each.authentication(Authentication.bearer(token)))) {
            token.get();
            pass(Duration.ofSeconds(5));
            for (int call = 0; call < 3; call++) {
                EndpointException refused = fails(EndpointException.Reason.REFUSED, () -> client.send(QUESTION));
                assertEquals("invalid_api_key", refused.code().orElseThrow());
            }
        }
        assertEquals(List.of("Bearer token-1", "Bearer token-2", "Bearer token-2", "Bearer token-2"), seen);
        assertEquals(2, fetched.get());
    }

    /** A file or a secret has a new key, and the caller's copy of it is read again for each attempt. */
    @Test
    void aRefusedKeyIsAskedForOnceMore() throws Exception {
        List<String> seen = new ArrayList<>();
        Queue<String> keys = new ArrayDeque<>(List.of("old", "new", "new"));
        try (HostileServer server = takesOnly("new", seen);
                EndpointClient client =
                        client(server, each -> each.authentication(Authentication.bearer(keys::remove)))) {
            assertEquals("blue", client.send(QUESTION).text());
        }
        assertEquals(List.of("Bearer old", "Bearer new"), seen);
    }
}
