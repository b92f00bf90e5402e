"""What tests of the preview share: hostile scripts, what is said of them, and what holds for any preview."""

import msgspec

from checkrein.execute.preview import MOST_BYTES, preview

TANGLED = "The script is too tangled to look through."
HOSTILE = {
    "open brackets": ("typescript", "[" * MOST_BYTES),
    "200,000 open brackets": ("typescript", "[" * 200_000),
    "a member chain of 100,000": ("typescript", "a" + ".a" * 100_000),
    "quotes": ("typescript", '"' * 65_000),
    "both quotes": ("typescript", "'\"" * 32_000),
    "keywords": ("typescript", "if while for class " * 3400),
    "generics": ("typescript", "a<" * 32_000),
    "arrows": ("typescript", "(a," * 21_000),
    "nested arrays": ("typescript", "[" * 32_000 + "]" * 32_000),
    "member chain": ("typescript", "codemode" + ".a" * 32_000),
    "non-null": ("typescript", "codemode.a" + "!" * 60_000 + "()"),
    "tagged": ("typescript", "codemode.a" + "``" * 30_000),
    "assignments": ("typescript", "a=" * 30_000 + "codemode.x;a()"),
    "nested functions": ("typescript", "()=>{codemode.a();" * 3000 + "}" * 3000),
    "nested branches": ("typescript", "let f=codemode.a;" + "if(a){f=codemode.b;f();" * 2500 + "}" * 2500),
    "nested patterns": ("typescript", "const " + "{a:" * 15_000 + "b" + "}" * 15_000 + "=codemode;b()"),
    "rewritten in a loop": ("typescript", "let f;for(;;){" + "f();f=codemode.b;" * 3500 + "}"),
    "written from afar": ("typescript", "let f;" + "()=>{f=codemode.b;f()};" * 2700),
    "passed on": ("typescript", "function g(f){g(f);f()};" + "g(codemode.a);" * 4000),
    "backwards": ("typescript", "".join(f"var a{i}=a{i - 1};" for i in range(3000, 0, -1)) + "a3000()"),
    "Python brackets": ("python", "[" * 65_000),
    "Python chain": ("python", "a" + ".a" * 32_000),
    "Python signs": ("python", "-" * 65_000 + "1"),
    "Python comparisons": ("python", "a<" * 32_000 + "a"),
    "Python names": ("python", ",".join(f"a{i}" for i in range(5000)) + "=" + ",".join(["fs__a"] * 5000)),
    "Python parameters": (
        "python",
        f"def g({','.join(f'a{i}' for i in range(5000))}):0\n" + "g(x)\n" * 2500,
    ),
    "Python sums": ("python", "n='a'\n" + "n+='b'\n" * 9000 + "codemode[n]()"),
    "Python loop": ("python", "while 1:\n" + " f();f=fs__b\n" * 4600),
    "Python backwards": ("python", "".join(f"a{i}=a{i - 1}\n" for i in range(3000, 0, -1)) + "a3000()"),
}

# What is said of them: a number of uses, or a fault.
OUTCOMES = {
    **dict.fromkeys(
        ["200,000 open brackets", "a member chain of 100,000"], "The script is longer than 64 KB."
    ),
    **dict.fromkeys(
        ["open brackets", "generics", "arrows", "keywords"], "The script is not valid TypeScript."
    ),
    "Python brackets": "The script is not valid Python.",
    **dict.fromkeys(["quotes", "both quotes", "assignments"], TANGLED),
    **dict.fromkeys(["nested functions", "nested branches", "Python chain", "Python signs"], TANGLED),
    **dict.fromkeys(["member chain", "non-null", "tagged", "passed on", "Python sums"], 1),
    "rewritten in a loop": 3500,
    "written from afar": 2700,
    "Python loop": 4600,
}


def check(script, language):
    """Whatever is reported lies in the script, in order, and can be written down."""
    found = preview(script, language)
    assert not (found.fault and found.uses)
    places = [(use.line, use.column) for use in found.uses]
    assert places == sorted(places)
    lines = script.replace("\r\n", "\n").replace("\r", "\n")
    if language != "python":
        lines = lines.replace("\u2028", "\n").replace("\u2029", "\n")
    for line, column in places:
        assert column < len(lines.split("\n")[line - 1])
    assert msgspec.json.encode(found)
    return found


def check_hostile(name):
    language, script = HOSTILE[name]
    found = check(script, language)
    # A slow processor may need more than the seconds there are for what a fast one looks through.
    assert found.fault == TANGLED or (found.fault or len(found.uses)) == OUTCOMES.get(name, 0)
