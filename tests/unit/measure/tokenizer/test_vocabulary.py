"""Text of an exact length, equal for equal seeds."""

from inference_blueprints.measure.tokenizer import one_token_words, random_text


def test_equal_seeds_give_equal_text_and_other_seeds_other_text() -> None:
    assert random_text(200, seed=7) == random_text(200, seed=7)
    assert random_text(200, seed=7) != random_text(200, seed=8)


def test_a_longer_text_begins_with_the_shorter_one() -> None:
    assert random_text(300, seed=1).startswith(random_text(64, seed=1))


def test_each_token_is_a_word_of_the_vocabulary_with_a_space_before_it() -> None:
    text = random_text(1000, seed=3)
    assert text.count(" ") == 1000
    assert set(text.split()) <= set(one_token_words())


def test_words_are_distinct() -> None:
    assert len(set(one_token_words())) == len(one_token_words()) >= 2000


def test_no_tokens_are_no_text() -> None:
    assert random_text(0, seed=1) == ""
