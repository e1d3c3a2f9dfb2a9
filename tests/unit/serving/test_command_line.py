from inference_blueprints.serving.command_line import command_line, flag_values


def test_each_flag_and_value_is_a_word_of_its_own() -> None:
    assert command_line({"model": "a b", "size": 2, "share": 0.9}) == (
        "--model",
        "a b",
        "--size",
        "2",
        "--share",
        "0.9",
    )


def test_a_switch_has_no_value() -> None:
    assert command_line({"eager": True, "caching": False}) == ("--eager", "--no-caching")


def test_values_are_read_back_by_flag() -> None:
    line = ("org/model", *command_line({"size": 2, "eager": True, "hosts": ("a", "b"), "length": 9}))
    assert flag_values(line) == {"size": "2", "hosts": "a", "length": "9"}
    assert flag_values((*line, "--size", "3"))["size"] == "3"  # engines take the last one
