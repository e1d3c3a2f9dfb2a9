package inferenceblueprints.endpoint;

import java.net.http.HttpResponse.BodySubscriber;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;

/** Reads a stream of server-sent events as it comes in. It asks for more only when the caller has taken the last part. */
final class EventBody implements BodySubscriber<byte[]> {
    private static final byte[] NOTHING = new byte[0];

    private final CompletableFuture<byte[]> end = new CompletableFuture<>();
    private final EventParser parser;
    private Flow.Subscription subscription;

    EventBody(EventParser parser) {
        this.parser = parser;
    }

    @Override
    public CompletionStage<byte[]> getBody() {
        return end;
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
        subscription = given;
        given.request(1);
    }

    @Override
    public void onNext(List<ByteBuffer> buffers) {
        try {
            for (ByteBuffer each : buffers) {
                parser.accept(each);
            }
        } catch (RuntimeException | AnswerBody.TooLongException error) {
            end.completeExceptionally(error);
        }
        if (end.isDone()) {
            subscription.cancel();
        } else {
            subscription.request(1);
        }
    }

    @Override
    public void onError(Throwable error) {
        // After the last event the answer is complete, whatever happens to the connection.
        if (parser.isComplete()) {
            end.complete(NOTHING);
        } else {
            end.completeExceptionally(error);
        }
    }

    @Override
    public void onComplete() {
        end.complete(NOTHING);
    }
}
