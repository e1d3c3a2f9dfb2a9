package inferenceblueprints.endpoint.opentelemetry;

import inferenceblueprints.endpoint.Answer;
import inferenceblueprints.endpoint.CallListener;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapPropagator;
import java.util.List;
import java.util.Objects;
import java.util.function.BiConsumer;

/**
 * Makes a client span of each call and sends its context to the endpoint, with the names of OpenTelemetry's conventions for
 * generative AI (https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/). Prompts and answers are not recorded.
 */
public final class OpenTelemetryListener implements CallListener {
    private final Tracer tracer;
    private final TextMapPropagator propagator;

    /**
     * Creates the listener.
     *
     * @param telemetry tracer provider and propagators
     */
    public OpenTelemetryListener(OpenTelemetry telemetry) {
        Objects.requireNonNull(telemetry, "telemetry");
        tracer = telemetry.getTracer("inferenceblueprints.endpoint");
        propagator = telemetry.getPropagators().getTextMapPropagator();
    }

    @Override
    public Observation begin(Start start) {
        Span span = tracer.spanBuilder(start.operation() + " " + start.model())
                .setSpanKind(SpanKind.CLIENT)
                .setAttribute("gen_ai.operation.name", start.operation())
                .setAttribute("gen_ai.request.model", start.model())
                .setAttribute("server.address", start.endpoint().getHost())
                .startSpan();
        if (start.endpoint().getPort() >= 0) {
            span.setAttribute("server.port", (long) start.endpoint().getPort());
        }
        Context context = Context.current().with(span);
        return new Observation() {
            @Override
            public void attempt(int number, boolean hedge, BiConsumer<String, String> header) {
                propagator.inject(context, header, (carrier, name, value) -> carrier.accept(name, value));
                if (number > 1) {
                    span.addEvent(hedge ? "hedge" : "retry");
                }
            }

            @Override
            public void end(End end) {
                end.answer().ifPresent(answer -> describe(span, answer));
                end.failure().ifPresent(failure -> {
                    span.setAttribute("error.type", end.outcome());
                    span.setStatus(StatusCode.ERROR, failure.getMessage());
                });
                span.end();
            }
        };
    }

    private static void describe(Span span, Answer answer) {
        span.setAttribute("gen_ai.response.model", answer.model());
        span.setAttribute("gen_ai.usage.input_tokens", (long) answer.usage().promptTokens());
        span.setAttribute("gen_ai.usage.output_tokens", (long) answer.usage().answerTokens());
        span.setAttribute(
                AttributeKey.stringArrayKey("gen_ai.response.finish_reasons"), List.of(answer.finishReason()));
    }
}
