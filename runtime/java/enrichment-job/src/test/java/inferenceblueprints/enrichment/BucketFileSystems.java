package inferenceblueprints.enrichment;

import java.net.URI;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.core.fs.FileSystemFactory;
import org.apache.flink.core.fs.local.LocalFileSystem;

/**
 * Folders of this machine under the two schemes of Flink's Hadoop plugin for S3. Like it
 * (`HadoopS3AccessHelper.pathToKey`), they are found by the path alone.
 */
abstract class BucketFileSystems implements FileSystemFactory {
    private final String scheme;

    private BucketFileSystems(String scheme) {
        this.scheme = scheme;
    }

    @Override
    public String getScheme() {
        return scheme;
    }

    @Override
    public FileSystem create(URI address) {
        return new LocalFileSystem() {
            @Override
            public URI getUri() {
                return address;
            }
        };
    }

    /** Addresses as former releases wrote them. */
    public static final class S3 extends BucketFileSystems {
        /** Called by Flink. */
        public S3() {
            super("s3");
        }
    }

    /** Addresses of today. */
    public static final class S3a extends BucketFileSystems {
        /** Called by Flink. */
        public S3a() {
            super("s3a");
        }
    }
}
