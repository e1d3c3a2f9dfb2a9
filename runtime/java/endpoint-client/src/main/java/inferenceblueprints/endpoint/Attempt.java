package inferenceblueprints.endpoint;

import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;

/** One request on the wire. */
final class Attempt {
    private static final int LONGEST_REFUSAL = 64 << 10;
    private static final int OK = 200;

    final int number;
    /** What says who calls. */
    Map<String, String> authentication = Map.of();
    private final Call call;
    private final AtomicBoolean over = new AtomicBoolean();
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
        // The JDK completes this future on a pool of its own, on small machines each time with a new thread. So it only
        // reports what happens before there is a body; the end of the body reports the rest, on a thread of this client.
        sent.whenComplete((response, error) -> {
            if (error != null) {
                end(null, error);
            }
        });
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

    private void end(Answer answer, Throwable error) {
        if (over.compareAndSet(false, true)) {
            call.ended(this, answer, error);
        }
    }

    private HttpResponse.BodySubscriber<byte[]> receive(HttpResponse.ResponseInfo info) {
        HttpResponse.BodySubscriber<byte[]> body = subscriber(info);
        body.getBody().whenComplete((bytes, error) -> {
            if (error != null) {
                end(null, error);
                return;
            }
            try {
                end(read(info, bytes), null);
            } catch (EndpointException wrong) {
                end(null, wrong);
            }
        });
        return body;
    }

    private HttpResponse.BodySubscriber<byte[]> subscriber(HttpResponse.ResponseInfo info) {
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

    private Answer read(HttpResponse.ResponseInfo info, byte[] bytes) {
        if (info.statusCode() != OK) {
            throw EndpointException.status(
                    info.statusCode(),
                    AnswerReader.detail(bytes),
                    AnswerReader.code(bytes),
                    RetryDelay.asked(info.headers(), java.time.Instant.now()));
        }
        if (streamed != null) {
            return streamed.answer();
        }
        if (call.isStreamed()) {
            String type = info.headers().firstValue("content-type").orElse("none");
            throw AnswerReader.invalid("asked for a stream of events, got content type " + type, null);
        }
        return AnswerReader.answer(bytes, call.isChat());
    }
}
