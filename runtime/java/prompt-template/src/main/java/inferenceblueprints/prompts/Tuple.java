package inferenceblueprints.prompts;

import java.util.List;

/** Values in round brackets; a list is not equal to it. */
record Tuple(List<Object> items) {}
