import pytest

from checkrein.execute.preview_scopes import (
    DYNAMIC,
    MOST_DEPTH,
    MOST_VALUES,
    OPAQUE,
    Binding,
    Overrun,
    Region,
    Scope,
    Value,
    Work,
    Write,
    as_alias,
    joined,
    member,
    the_text,
)

A, B = Value("tool", "a"), Value("tool", "b")


@pytest.fixture
def work():
    return Work(10_000, 10.0)


def test_work_ends_by_steps_and_by_time():
    work = Work(3, 10.0)
    with pytest.raises(Overrun):
        for _ in range(4):
            work.spend()
    with pytest.raises(Overrun):
        late = Work(10_000, -1.0)
        for _ in range(200):
            late.spend()


def test_the_last_write_that_cannot_be_skipped_counts(work):
    top = Region(function=True)
    branch = Region(top)
    name = Binding(top)
    name.write(Write(1, top, lambda: (A,)))
    name.write(Write(2, branch, lambda: (B,)))
    assert name.read(top, 0, work) == (OPAQUE,)
    assert name.read(top, 1, work) == (A,)
    assert set(name.read(top, 3, work)) == {A, B}
    assert name.read(branch, 3, work) == (B,)


def test_in_a_loop_a_later_write_is_read_earlier(work):
    top = Region(function=True)
    loop = Region(top, loop=True)
    name = Binding(top)
    name.write(Write(1, top, lambda: (A,)))
    name.write(Write(5, Region(loop), lambda: (B,)))
    assert name.read(top, 2, work) == (A,)
    assert set(name.read(loop, 2, work)) == {A, B}


def test_another_function_reads_and_writes_at_any_time(work):
    top = Region(function=True)
    inner = Region(top, function=True)
    name = Binding(top)
    name.write(Write(5, top, lambda: (A,)))
    assert name.read(inner, 0, work) == (A,)
    name.write(Write(9, inner, lambda: (B,)))
    assert set(name.read(top, 6, work)) == {A, B}


def test_a_name_that_depends_on_itself_or_on_too_many_ends(work):
    top = Region(function=True)
    name = Binding(top)
    name.write(Write(1, top, lambda: name.read(top, 2, work)))
    assert name.read(top, 2, work) == (OPAQUE,)
    many = Binding(top)
    for at in range(100):
        many.write(Write(at, Region(top), lambda at=at: (Value("tool", str(at)),)))
    assert len(many.read(top, 1000, work)) <= MOST_VALUES
    work.depth = MOST_DEPTH
    assert Write(0, top, lambda: (A,)).values(work) == (OPAQUE,)


def test_names_of_a_class_body_are_not_seen_from_its_functions(work):
    top = Region(function=True)
    outer = Scope(None, top)
    body = Scope(outer, top, hidden=True)
    method = Scope(body, Region(top, function=True), function=True)
    own = body.declare("x")
    assert body.find("x", work) is own
    assert method.find("x", work) is None
    assert outer.declare("x") is method.find("x", work)


def test_texts_are_put_together_up_to_a_length():
    assert the_text(joined(["a", "b"], "_")) == "a_b"
    assert joined(["a", None]) == (OPAQUE,)
    assert joined(["a" * 200, "b" * 200]) == (OPAQUE,)
    assert the_text((Value("text", "a"), Value("text", "b"))) is None


def test_another_name_makes_an_alias_and_hides_what_was_reported_before():
    assert as_alias((A, DYNAMIC, OPAQUE)) == (Value("tool", "a", "alias"), OPAQUE, OPAQUE)
    assert member(Value("namespace"), "a", literal=True).how == "literal"
    assert member(Value("namespace", how="alias"), "a", literal=True).how == "alias"
    assert member(Value("namespace"), None, literal=True) is DYNAMIC
