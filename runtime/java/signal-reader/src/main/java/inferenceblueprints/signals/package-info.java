/**
 * Reads the newest signals from the store while a request waits. The Python package {@code runtime/signals} is held to the
 * same conformance file.
 *
 * <p>{@link inferenceblueprints.signals.SignalReader} is the entry point.
 */
package inferenceblueprints.signals;
