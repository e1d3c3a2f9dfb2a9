package inferenceblueprints.enrichment;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.json.JsonMapper;
import inferenceblueprints.prompts.PromptTemplate;
import inferenceblueprints.prompts.PromptTemplateException;

/** Compiles the template of a prompt. */
final class Templates {
    private static final JsonMapper MAPPER = JsonMapper.builder().build();

    private Templates() {}

    static Rendering rendering(JobConfiguration.Prompt prompt) {
        try {
            PromptTemplate template = PromptTemplate.of(MAPPER.readTree(prompt.template()), prompt.maxCharacters());
            return values -> {
                try {
                    return template.render(values);
                } catch (PromptTemplateException error) {
                    throw new Rendering.Failure(error.getMessage());
                }
            };
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException("configuration: prompt.template: " + error.getOriginalMessage(), error);
        }
    }
}
