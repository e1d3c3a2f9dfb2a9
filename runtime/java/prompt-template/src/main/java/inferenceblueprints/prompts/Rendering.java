package inferenceblueprints.prompts;

/** The output of a rendering and what it may still cost. */
final class Rendering {
    private static final int MOST_ROUNDS = 100_000;
    private static final int MOST_STEPS = 5_000_000;

    private final int mostCharacters;
    private final StringBuilder output = new StringBuilder();
    private int characters;
    private int rounds;
    private int steps;

    Rendering(int mostCharacters) {
        this.mostCharacters = mostCharacters;
    }

    int mostCharacters() {
        return mostCharacters;
    }

    void write(String text) {
        characters += Texts.length(text);
        if (characters > mostCharacters) {
            throw new WrongValueException("the prompt is longer than " + mostCharacters + " characters");
        }
        output.append(text);
    }

    /** Counts a round of a loop. */
    void round() {
        if (++rounds > MOST_ROUNDS) {
            throw new WrongValueException("it loops more than " + MOST_ROUNDS + " times");
        }
    }

    /** Counts work: an expression, or an item that a filter looks at. */
    void step() {
        steps(1);
    }

    void steps(int more) {
        steps += more;
        if (steps > MOST_STEPS) {
            throw new WrongValueException("it needs more than " + MOST_STEPS + " steps");
        }
    }

    /** Refuses the output of a filter before it is made. */
    void checkSize(long size) {
        if (size > mostCharacters) {
            throw new WrongValueException("the output of a filter is longer than " + mostCharacters + " characters");
        }
    }

    String prompt() {
        return output.toString();
    }
}
