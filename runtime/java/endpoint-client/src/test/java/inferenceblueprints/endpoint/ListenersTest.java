package inferenceblueprints.endpoint;

import static inferenceblueprints.endpoint.Calls.QUESTION;
import static inferenceblueprints.endpoint.Calls.client;
import static inferenceblueprints.endpoint.Calls.nothingInFlight;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import inferenceblueprints.endpoint.micrometer.MicrometerListener;
import inferenceblueprints.endpoint.opentelemetry.OpenTelemetryListener;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.propagation.ContextPropagators;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.testing.exporter.InMemorySpanExporter;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.data.StatusData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;

class ListenersTest {
    record Colour(String name) {}

    private final BlockingQueue<HostileServer.Request> seen = new LinkedBlockingQueue<>();

    /** Fails the first request, answers the second, and refuses the rest. */
    private void behave(HostileServer.Request request) throws Exception {
        seen.add(request);
        switch (request.number) {
            case 1 -> request.answer(503, "", "");
            case 2 -> request.answer("blue");
            default -> request.answer(400, "", "no");
        }
    }

    @Test
    void micrometerCountsCallsRetriesTokensAndFallbacks() throws Exception {
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        try (HostileServer server = new HostileServer(this::behave);
                EndpointClient client = client(server, builder -> builder.listener(new MicrometerListener(registry)))) {
            client.send(QUESTION);
            client.decide(QUESTION, Structure.of(Colour.class, new Colour("grey")));
        }
        assertEquals(1, registry.get("inference.client.calls").tag("outcome", "answered").tag("model", "m").timer().count());
        assertEquals(1, registry.get("inference.client.calls").tag("outcome", "refused").timer().count());
        assertEquals(1, registry.get("inference.client.first.byte").timer().count());
        assertEquals(1, registry.get("inference.client.retries").counter().count());
        assertEquals(0, registry.get("inference.client.hedges").counter().count());
        assertEquals(7, registry.get("inference.client.tokens").tag("kind", "prompt").counter().count());
        assertEquals(4, registry.get("inference.client.tokens").tag("kind", "cached").counter().count());
        assertEquals(2, registry.get("inference.client.tokens").tag("kind", "answer").counter().count());
        assertEquals(1, registry.get("inference.client.fallbacks").tag("reason", "refused").counter().count());
        assertEquals(0, registry.get("inference.client.in.flight").gauge().value());
    }

    @Test
    void openTelemetryGetsASpanPerCallAndTheEndpointItsContext() throws Exception {
        InMemorySpanExporter spans = InMemorySpanExporter.create();
        OpenTelemetrySdk telemetry = OpenTelemetrySdk.builder()
                .setTracerProvider(SdkTracerProvider.builder()
                        .addSpanProcessor(SimpleSpanProcessor.create(spans))
                        .build())
                .setPropagators(ContextPropagators.create(W3CTraceContextPropagator.getInstance()))
                .build();
        try (HostileServer server = new HostileServer(this::behave);
                EndpointClient client =
                        client(server, builder -> builder.listener(new OpenTelemetryListener(telemetry)))) {
            client.send(QUESTION);
            assertThrows(EndpointException.class, () -> client.send(QUESTION));
        }
        List<SpanData> found = spans.getFinishedSpanItems();
        assertEquals(2, found.size());
        SpanData answered = found.get(0);
        assertEquals("chat m", answered.getName());
        assertEquals(7L, answered.getAttributes().get(AttributeKey.longKey("gen_ai.usage.input_tokens")));
        assertEquals("retry", answered.getEvents().get(0).getName());
        assertTrue(seen.take().headers.get("traceparent").contains(answered.getTraceId()));
        assertEquals(StatusData.error().getStatusCode(), found.get(1).getStatus().getStatusCode());
        assertEquals("refused", found.get(1).getAttributes().get(AttributeKey.stringKey("error.type")));
    }

    @Test
    void aListenerThatFailsChangesNoCall() throws Exception {
        try (HostileServer server = new HostileServer(request -> request.answer("blue"));
                EndpointClient client = client(server, builder -> builder.listener(start -> end -> {
                    throw new IllegalStateException("listener");
                }))) {
            assertEquals("blue", client.send(QUESTION).text());
            nothingInFlight(client);
        }
    }
}
