"""Draws docs/images/eval.svg from real commands in a terminal of their own: `make picture`.

A script runs, its person is asked about one of its calls, and its story is shown.
"""

from __future__ import annotations

from capturing import draw, home, typed

SERVER = ["servers", "add", "docs", "--", "python", "-m", "checkrein.cli.demo_server"]
SETTINGS = """
[evaluation.profiles.desk]
asklist = ["docs__add_page"]
"""
SCRIPT = """\
const found = await codemode.docs__search({query: "refunds"});
console.log(found.content[0].text);
const titles = ["Refunds in short", "Refunds, the whole story"];
const added = await Promise.allSettled(titles.map((title) => codemode.docs__add_page({title})));
return added.map((each, at) => `${titles[at]}: ${each.reason?.reason ?? "added"}`);
"""


def main() -> None:
    with home(SETTINGS) as desk:
        (desk / "tidy.js").write_text(SCRIPT, encoding="utf-8")
        typed(SERVER, ("run it now?", "y"), ("n = not now", "y"))
        ran = typed(
            ["eval", "run", "tidy.js", "--profile", "desk"], ("Run this call?", "y"), ("Run this call?", "n")
        )
        from checkrein import knocking

        (row,) = knocking.ask(knocking.start(), "run.list", {"limit": 1})
        shown = typed(["eval", "show", row["id"][:12]])
        # Whose machine it was drawn on is nobody's business.
        parts = [ran, shown.replace(str(desk), "~/desk").replace(row["owner"], "person:ada")]
    draw("eval.svg", "checkrein eval", parts, 112)


main()
