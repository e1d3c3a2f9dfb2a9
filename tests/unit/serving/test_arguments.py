from inference_blueprints.serving.arguments import words


def test_each_flag_and_value_is_a_word_of_its_own() -> None:
    assert words({"model": "a b", "size": 2, "share": 0.9}) == (
        "--model",
        "a b",
        "--size",
        "2",
        "--share",
        "0.9",
    )


def test_a_switch_has_no_value() -> None:
    assert words({"eager": True, "caching": False}) == ("--eager", "--no-caching")
