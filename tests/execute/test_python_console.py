"""What a script prints is kept up to a limit; a flood is told of once."""

from checkrein.execute.python_console import Console


def test_output_is_cut_with_a_mark_at_whole_characters():
    console = Console(5, lambda: None)
    console("abc")
    console("éé")
    console("more")
    assert console.text == "abcé\n… more output was cut\n"
    assert console.size == 11


def test_exactly_the_limit_is_not_cut_until_more_comes():
    console = Console(3, lambda: None)
    console("abc")
    assert console.text == "abc"
    console("d")
    console("e")
    assert console.text == "abc\n… more output was cut\n"


def test_a_flood_is_told_of_once():
    told = []
    console = Console(10, lambda: told.append(1))
    for _ in range(100):
        console("x" * 10)
    assert told == [1]
    assert console.flooded


def test_what_was_kept_counts_on():
    console = Console(4, lambda: None, "abc", 3)
    console("de")
    console.note("note: x")
    assert console.text == "abcd\n… more output was cut\nnote: x\n"
