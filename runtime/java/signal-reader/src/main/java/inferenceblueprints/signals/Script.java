package inferenceblueprints.signals;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** A script of the store, and the digest by which the store finds it after it was sent once. */
record Script(String text, String digest) {
    /**
     * Writes a record if its version is newer. It is that of the Python package (runtime/signals/store.py), so that a server keeps
     * one script for both.
     */
    static final Script WRITE_IF_NEWER = of("""

            local version = redis.call('HGET', KEYS[1], 'v')
            if version and tonumber(version) >= tonumber(ARGV[1]) then return 0 end
            redis.call('HSET', KEYS[1], 'v', ARGV[1], 'd', ARGV[2])
            redis.call('EXPIREAT', KEYS[1], ARGV[3])
            return 1
            """);

    private static Script of(String text) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-1").digest(text.getBytes(StandardCharsets.UTF_8));
            return new Script(text, HexFormat.of().formatHex(digest));
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }
}
