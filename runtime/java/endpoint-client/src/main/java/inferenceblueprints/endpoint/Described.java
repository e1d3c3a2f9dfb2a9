package inferenceblueprints.endpoint;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** Tells the model what a record or one of its components means. It becomes the {@code description} in the JSON Schema. */
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.RECORD_COMPONENT, ElementType.TYPE})
public @interface Described {
    /**
     * Returns the description.
     *
     * @return the description, in the language of the prompt
     */
    String value();
}
