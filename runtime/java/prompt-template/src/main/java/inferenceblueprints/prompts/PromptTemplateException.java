package inferenceblueprints.prompts;

/** No prompt can be rendered from a template or its values. The message names the line of the template and the reason. */
public class PromptTemplateException extends RuntimeException {
    private static final long serialVersionUID = 1;

    PromptTemplateException(String reason) {
        super(reason);
    }

    PromptTemplateException(String reason, Throwable cause) {
        super(reason, cause);
    }
}
