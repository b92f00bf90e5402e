from hypothesis import given
from hypothesis import strategies as st

from checkrein.console.diffs import changed, is_patch, patched, written


def test_an_edit_shows_what_goes_and_what_comes():
    found = changed("a\nb\nc", "a\nB\nc")
    assert ("out", "-b") in found
    assert ("in", "+B") in found
    assert ("", " a") in found


def test_an_edit_that_changes_nothing_says_so():
    assert changed("a", "a") == (("place", "nothing changes"),)


def test_a_very_long_edit_is_not_compared():
    found = changed("a\n" * 3000, "b\n" * 3000)
    assert len(found) < 1000
    assert "\n".join(line for _, line in found).count("+b") == 3000


@given(st.text())
def test_no_character_is_lost(text):
    assert "\n".join(line[1:] for _, line in written(text)).startswith(text[:1])
    assert "\n".join(line for _, line in patched(text)) == text


def test_a_whole_file_is_cut_and_says_so():
    assert written("x\n" * 1000)[-1] == ("place", "… 601 more lines")


def test_a_patch_is_known_by_its_beginning():
    assert is_patch("*** Begin Patch\n*** Update File: a\n")
    assert is_patch("--- a/x\n+++ b/x\n")
    assert not is_patch("--- a")
    assert not is_patch("ls -l\n")
    assert patched("@@ -1 +1 @@\n-a\n+b\n c") == (
        ("place", "@@ -1 +1 @@"),
        ("out", "-a"),
        ("in", "+b"),
        ("", " c"),
    )
