"""Text of an exact length, equal for equal seeds."""

from inference_blueprints.local.serving.vocabulary import text_of, words


def test_equal_seeds_give_equal_text_and_other_seeds_other_text() -> None:
    assert text_of(200, seed=7) == text_of(200, seed=7)
    assert text_of(200, seed=7) != text_of(200, seed=8)


def test_a_longer_text_begins_with_the_shorter_one() -> None:
    assert text_of(300, seed=1).startswith(text_of(64, seed=1))


def test_each_token_is_a_word_of_the_vocabulary_with_a_space_before_it() -> None:
    text = text_of(1000, seed=3)
    assert text.count(" ") == 1000
    assert set(text.split()) <= set(words())


def test_words_are_distinct() -> None:
    assert len(set(words())) == len(words()) >= 2000


def test_no_tokens_are_no_text() -> None:
    assert text_of(0, seed=1) == ""
