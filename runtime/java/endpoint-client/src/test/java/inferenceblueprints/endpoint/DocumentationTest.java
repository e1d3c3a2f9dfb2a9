package inferenceblueprints.endpoint;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The examples of docs/java-client.md compile, and run one after the other. That of signals is the other module's. */
class DocumentationTest {
    private static final Pattern FENCE = Pattern.compile("^```java\n(.*?)^```", Pattern.MULTILINE | Pattern.DOTALL);

    private static List<String> examples() throws Exception {
        Path page = Path.of(System.getProperty("checkout"), "docs/java-client.md");
        List<String> found = new ArrayList<>();
        Matcher fences = FENCE.matcher(Files.readString(page));
        while (fences.find()) {
            if (!fences.group(1).contains("SignalRe")) {
                found.add(fences.group(1));
            }
        }
        return found;
    }

    @Test
    void theExamplesCompileAndRun(@TempDir Path folder) throws Exception {
        List<String> examples = examples();
        assertTrue(examples.size() >= 5, examples.size() + " examples");
        try (HostileServer server = new HostileServer(DocumentationTest::answer)) {
            String body = examples.stream().collect(Collectors.joining("\n"))
                    .replace("https://models.internal", server.uri().toString())
                    .replace("Duration.ofMillis(300)", "Duration.ofSeconds(20)");
            Path source = folder.resolve("Examples.java");
            Files.writeString(source, """
                    import inferenceblueprints.endpoint.*;
                    import java.net.URI;
                    import java.time.Duration;
                    import java.util.*;
                    import java.util.concurrent.*;
                    public class Examples {
                        public static void run() throws Exception {
                    """ + body + "}}");
            JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
            ByteArrayOutputStream errors = new ByteArrayOutputStream();
            int result = compiler.run(null, null, errors, "-d", folder.toString(), source.toString());
            assertEquals(0, result, errors.toString(StandardCharsets.UTF_8));
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream before = System.out;
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            try (URLClassLoader loader = new URLClassLoader(new URL[] {folder.toUri().toURL()})) {
                loader.loadClass("Examples").getMethod("run").invoke(null);
            } finally {
                System.setOut(before);
            }
            assertEquals(
                    List.of("blue", "Once upon a time blue", "BUY because it names a size"),
                    printed.toString(StandardCharsets.UTF_8).lines().toList());
        }
    }

    private static void answer(HostileServer.Request request) throws Exception {
        if (request.body.contains("\"stream\":true")) {
            request.events();
            request.part("Once upon ");
            request.part("a time ");
            request.end();
        } else if (request.path.endsWith("/v1/completions")) {
            request.answer(200, "", "{\"choices\":[{\"text\":\"blue\"}]}");
        } else if (request.body.contains("response_format")) {
            request.answer("{\\\"explanation\\\":\\\"it names a size\\\",\\\"value\\\":"
                    + "{\\\"goal\\\":\\\"BUY\\\",\\\"confidence\\\":0.9}}");
        } else {
            request.answer("blue");
        }
    }
}
