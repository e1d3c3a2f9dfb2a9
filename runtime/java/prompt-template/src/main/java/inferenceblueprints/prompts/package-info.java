/**
 * Renders prompts from templates.
 *
 * <p>The Python library parses and checks templates with Jinja2 ({@code contracts/inference_contracts/prompt_template.py}) and
 * writes their syntax trees into the configuration of a job. This package evaluates those trees with the semantics of Python, so
 * that a prompt is the same in both languages. {@code tests/runtime/templates/conformance.json} holds both to it.
 */
package inferenceblueprints.prompts;
