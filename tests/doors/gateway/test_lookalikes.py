import pytest

from checkrein.doors.gateway.lookalikes import skeleton


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fs__read_file", "fs__read-file"),
        ("fs__read_file", "FS__Read.File"),
        ("fs__read_file", "fs_read_file"),
        ("fs__list", "fs__1ist"),
        ("fs__list", "fs__Iist"),
        ("fs__go", "fs__g0"),
        ("fs__copy", "fs__сору"),
        ("fs__copy", "fs__ϲοργ"),
        ("fs__copy", "fs__ＣＯＰＹ"),
        ("fs__copy", "fs__co\u200bpy"),
        ("fs__copy", "fs__co\u00adpy\ufe0f"),
        ("fs__copy", "fs__cópy"),
        ("fs__email", "fs__ernail"),
        ("fs__copy", "fs__𝐜𝐨𝐩𝐲"),
    ],
)
def test_names_that_look_alike_are_one(one, other):
    assert skeleton(one) == skeleton(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fs__read_file", "fs__read_files"),
        ("fs__get_user", "fs__set_user"),
        ("git__hub_list", "github__list"),
        ("a__read", "b__read"),
        ("fs__v2", "fs__v3"),
    ],
)
def test_names_that_differ_stay_apart(one, other):
    assert skeleton(one) != skeleton(other)
