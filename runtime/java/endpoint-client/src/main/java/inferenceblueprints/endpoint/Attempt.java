package inferenceblueprints.endpoint;

import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.CompletableFuture;

/** One request on the wire. */
final class Attempt {
    private static final int LONGEST_REFUSAL = 64 << 10;
    private static final int OK = 200;

    final int number;
    private final Call call;
    private StreamedAnswer streamed;
    private CompletableFuture<HttpResponse<byte[]>> exchange;
    private boolean cancelled;

    Attempt(Call call, int number) {
        this.call = call;
        this.number = number;
    }

    void send(HttpClient http, HttpRequest request) {
        CompletableFuture<HttpResponse<byte[]>> sent = http.sendAsync(request, this::receive);
        boolean late;
        synchronized (this) {
            exchange = sent;
            late = cancelled;
        }
        if (late) {
            sent.cancel(true);
        }
        sent.whenComplete((response, error) -> call.ended(this, response, error));
    }

    /** Closes the connection, or the stream of an HTTP/2 connection. */
    void cancel() {
        CompletableFuture<HttpResponse<byte[]>> running;
        synchronized (this) {
            cancelled = true;
            running = exchange;
        }
        // Cancelling a dependent future would leave the request running: this is the one that sendAsync returned.
        if (running != null) {
            running.cancel(true);
        }
    }

    private HttpResponse.BodySubscriber<byte[]> receive(HttpResponse.ResponseInfo info) {
        if (info.statusCode() != OK) {
            return new AnswerBody(LONGEST_REFUSAL, true);
        }
        call.answers(this);
        if (!call.isStreamed()) {
            return new AnswerBody(call.maxAnswerBytes(), false);
        }
        String type = info.headers().firstValue("content-type").orElse("");
        if (!type.startsWith("text/event-stream")) {
            return new AnswerBody(LONGEST_REFUSAL, true);
        }
        streamed = new StreamedAnswer(call.isChat(), call.maxAnswerBytes(), text -> call.deliver(this, text));
        return streamed.body();
    }

    /** Reads the answer of a complete exchange. */
    Answer read(HttpResponse<byte[]> response) {
        if (response.statusCode() != OK) {
            throw EndpointException.status(
                    response.statusCode(),
                    AnswerReader.detail(response.body()),
                    RetryDelay.asked(response.headers(), java.time.Instant.now()));
        }
        if (streamed != null) {
            return streamed.answer();
        }
        if (call.isStreamed()) {
            String type = response.headers().firstValue("content-type").orElse("none");
            throw AnswerReader.invalid("asked for a stream of events, got content type " + type, null);
        }
        return AnswerReader.answer(response.body(), call.isChat());
    }
}
