package inferenceblueprints.endpoint;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.http.HttpResponse.BodySubscriber;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;

/** Collects a body up to a limit. Beyond it, the body either fails or is cut off, and the connection closes. */
final class AnswerBody implements BodySubscriber<byte[]> {
    /** The endpoint sends more than allowed. */
    static final class TooLongException extends IOException {
        private static final long serialVersionUID = 1L;

        TooLongException(int limit) {
            super("the answer is longer than maxAnswerBytes, " + limit + " bytes");
        }
    }

    private final CompletableFuture<byte[]> whole = new CompletableFuture<>();
    private final ByteArrayOutputStream collected = new ByteArrayOutputStream(1024);
    private final int limit;
    private final boolean cutting;
    private Flow.Subscription subscription;

    AnswerBody(int limit, boolean cutting) {
        this.limit = limit;
        this.cutting = cutting;
    }

    @Override
    public CompletionStage<byte[]> getBody() {
        return whole;
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
        subscription = given;
        given.request(Long.MAX_VALUE);
    }

    @Override
    public void onNext(List<ByteBuffer> buffers) {
        for (ByteBuffer each : buffers) {
            byte[] bytes = new byte[Math.min(each.remaining(), limit - collected.size() + 1)];
            each.get(bytes);
            collected.writeBytes(bytes);
        }
        if (collected.size() > limit && !whole.isDone()) {
            if (cutting) {
                whole.complete(collected.toByteArray());
            } else {
                whole.completeExceptionally(new TooLongException(limit));
            }
            subscription.cancel();
        }
    }

    @Override
    public void onError(Throwable error) {
        whole.completeExceptionally(error);
    }

    @Override
    public void onComplete() {
        whole.complete(collected.toByteArray());
    }
}
