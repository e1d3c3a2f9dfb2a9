package inferenceblueprints.endpoint;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class EventParserTest {
    private static final String STREAM =
            ": comment\n\ndata: é€😀\n\ndata:no space\r\n\r\nevent: x\rdata: one\rdata: two\r\rid: 7\n\ndata: [DONE]\n\ndata: late\n\n";

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 7, 1000})
    void eventsDoNotDependOnHowBytesComeIn(int size) throws Exception {
        List<String> events = new ArrayList<>();
        EventParser parser = new EventParser(10_000, events::add);
        byte[] bytes = STREAM.getBytes(StandardCharsets.UTF_8);
        for (int start = 0; start < bytes.length; start += size) {
            parser.accept(ByteBuffer.wrap(bytes, start, Math.min(size, bytes.length - start)));
        }
        assertEquals(List.of("é€😀", "no space", "one\ntwo"), events);
        assertTrue(parser.isComplete());
    }

    @Test
    void aLineWithoutEndIsStopped() {
        EventParser parser = new EventParser(100, event -> {});
        assertThrows(AnswerBody.TooLongException.class, () -> parser.accept(ByteBuffer.wrap(new byte[101])));
    }
}
