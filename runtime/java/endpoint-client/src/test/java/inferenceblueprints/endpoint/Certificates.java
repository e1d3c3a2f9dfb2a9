package inferenceblueprints.endpoint;

import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** An authority and certificates of it, made with the JDK's keytool. */
final class Certificates {
    private static final char[] PASSWORD = "changeit".toCharArray();

    private final Path file;

    private Certificates(Path file) {
        this.file = file;
    }

    /** Makes the certificates good, other (of another host), expired, and client. */
    static Certificates make(Path directory) throws Exception {
        Certificates made = new Certificates(directory.resolve("keys.p12"));
        made.add("authority", "-ext", "bc:c");
        made.add("good", "-signer", "authority", "-ext", "san=ip:127.0.0.1");
        made.add("other", "-signer", "authority", "-ext", "san=dns:other.example");
        made.add("expired", "-signer", "authority", "-ext", "san=ip:127.0.0.1", "-startdate", "-3d", "-validity", "1");
        made.add("client", "-signer", "authority", "-ext", "eku=clientAuth");
        return made;
    }

    private void add(String alias, String... more) throws Exception {
        String keytool = Path.of(System.getProperty("java.home"), "bin", "keytool").toString();
        List<String> command = new ArrayList<>(List.of(
                keytool, "-J-XX:TieredStopAtLevel=1", "-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-alias", alias, "-dname",
                "CN=" + alias, "-keystore", file.toString(), "-storetype", "PKCS12", "-storepass", new String(PASSWORD)));
        command.addAll(List.of(more));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        if (!process.waitFor(60, TimeUnit.SECONDS) || process.exitValue() != 0) {
            throw new IllegalStateException(said);
        }
    }

    /** Returns a context that trusts the authority and shows a certificate; none if the name is null. */
    SSLContext context(String shown) throws Exception {
        KeyStore all = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(file)) {
            all.load(in, PASSWORD);
        }
        KeyStore own = KeyStore.getInstance("PKCS12");
        own.load(null, null);
        if (shown != null) {
            own.setKeyEntry(shown, all.getKey(shown, PASSWORD), PASSWORD, all.getCertificateChain(shown));
        }
        KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
        keys.init(own, PASSWORD);
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("authority", all.getCertificate("authority"));
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        return context;
    }
}
