package inferenceblueprints.endpoint;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * The parts of a streamed answer as they come in, for one thread. Close it if you stop early: that closes the connection.
 * A stream that nobody reads or closes ends at its deadline.
 */
public final class AnswerStream implements Iterable<String>, AutoCloseable {
    // An empty part never comes from the endpoint; here it marks the end.
    private static final String END = "";

    // Bounded by maxAnswerBytes.
    private final BlockingQueue<String> parts = new LinkedBlockingQueue<>();
    private CompletableFuture<Answer> result;

    AnswerStream() {}

    void part(String text) {
        parts.add(text);
    }

    AnswerStream endsWith(CompletableFuture<Answer> call) {
        result = call;
        call.whenComplete((answer, error) -> parts.add(END));
        return this;
    }

    /**
     * Returns the parts. {@code hasNext} waits for the next one, and throws {@link EndpointException} if the stream fails.
     *
     * @return the parts that were not read yet
     */
    @Override
    public Iterator<String> iterator() {
        return new Iterator<>() {
            private String next;

            @Override
            public boolean hasNext() {
                if (next == null) {
                    next = take();
                }
                return !next.equals(END);
            }

            @Override
            public String next() {
                if (!hasNext()) {
                    throw new NoSuchElementException("the answer has ended");
                }
                String part = next;
                next = null;
                return part;
            }
        };
    }

    private String take() {
        try {
            String part = parts.take();
            if (part.equals(END)) {
                parts.add(END); // for the next iterator
                Waiting.result(result);
            }
            return part;
        } catch (InterruptedException stop) {
            close();
            throw Waiting.interrupted(stop);
        }
    }

    /**
     * Returns the whole answer if the stream has ended well.
     *
     * @return the answer with its tokens and its finish reason, or empty while parts may follow
     */
    public Optional<Answer> answer() {
        if (!result.isDone() || result.isCompletedExceptionally()) {
            return Optional.empty();
        }
        return Optional.of(result.join());
    }

    /** Ends the stream and closes its connection, if it has not ended by itself. */
    @Override
    public void close() {
        result.cancel(true);
    }

    /** Waits for results on the caller's thread. */
    static final class Waiting {
        private Waiting() {}

        static Answer result(CompletableFuture<Answer> call) throws InterruptedException {
            try {
                return call.get();
            } catch (ExecutionException error) {
                if (error.getCause() instanceof EndpointException known) {
                    throw known.onThisThread();
                }
                throw new IllegalStateException(error.getCause());
            } catch (java.util.concurrent.CancellationException cancelled) {
                throw EndpointException.of(EndpointException.Reason.CANCELLED, "by the caller", cancelled);
            }
        }

        static EndpointException interrupted(InterruptedException stop) {
            Thread.currentThread().interrupt();
            return EndpointException.of(EndpointException.Reason.CANCELLED, "the thread was interrupted", stop);
        }
    }
}
