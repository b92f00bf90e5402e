"""Python as its authors write it, and as somebody writes who does not want to be read."""

import pytest

from checkrein.execute.preview import preview

# script -> what is seen, as "tool line:column kind"; "?" where the text does not say which tool.
SEEN = {
    # Plain calls
    "fs__a(x=1)": "fs__a 1:0 direct",
    "await codemode.a(x=1)": "a 1:6 direct",
    "codemode.a": "a 1:0 reference",
    "é = 'ü'; fs__a()": "fs__a 1:9 direct",
    "s = '🙂'; codemode.a()": "a 1:9 direct",
    '# fs__a()\n\'fs__a()\'\n"""codemode.b()"""': "",
    "return fs__a()": "fs__a 1:7 direct",
    "async def main():\n    return await fs__a()\nawait main()": "fs__a 2:17 direct",
    "f = lambda p: fs__a(path=p)": "fs__a 1:14 direct",
    "[fs__a(x) for x in fs__b()]": "fs__a 1:1 direct, fs__b 1:19 direct",
    "{k: fs__a(v) for k, v in x.items() if fs__b(k)}": "fs__a 1:4 direct, fs__b 1:38 direct",
    "if (r := fs__a()):\n    print(r)": "fs__a 1:9 direct",
    "def f(x=fs__a()): ...": "fs__a 1:8 direct",
    "@fs__a(1)\ndef f(): ...": "fs__a 1:1 direct",
    "class A(fs__a()):\n    x = fs__b()\n    def m(self): return fs__c()": (
        "fs__a 1:8 direct, fs__b 2:8 direct, fs__c 3:24 direct"
    ),
    "async with fs__a() as a:\n    async for x in fs__b(): pass": "fs__a 1:11 direct, fs__b 2:19 direct",
    "x = yield_(fs__a(), *fs__b(), **fs__c())": "fs__a 1:11 direct, fs__b 1:21 direct, fs__c 1:32 direct",
    "ｆs__a()": "fs__a 1:0 direct",
    "x = 1\r\n\r\nfs__a()": "fs__a 3:0 direct",
    "x = 1\rfs__a()": "fs__a 2:0 direct",
    "\ufefffs__a()": "fs__a 1:0 direct",
    "print('\\d', fs__a())": "fs__a 1:12 direct",
    "(codemode).a()": "a 1:0 direct",
    "codemode.a(codemode.b(fs__c()))": "a 1:0 direct, b 1:11 direct, fs__c 1:22 direct",
    "__name__; __import__('x'); x__; _a__b()": "",
    # Names put together
    "codemode['a']()": "a 1:0 literal",
    "getattr(codemode, 'a')()": "a 1:0 literal",
    "getattr(codemode, 'a' 'b')()": "ab 1:0 literal",
    "getattr(codemode, 'a', None)()": "a 1:0 literal",
    "n = 'a'\ngetattr(codemode, n)()": "a 2:0 literal",
    "n = 'a'\nn += 'b'\ncodemode[n]()": "ab 3:0 literal",
    "p = 'x'\ncodemode[f'a_{p}']()": "a_x 2:0 literal",
    "codemode['_'.join(['a', 'b'])]()": "a_b 1:0 literal",
    "codemode.__getattr__('a')()": "a 1:0 literal",
    "codemode.__dict__['a']()": "a 1:0 literal",
    "vars(codemode)['a']()": "a 1:0 literal",
    "globals()['fs__a']()": "fs__a 1:0 literal",
    "globals().get('fs__a')()": "fs__a 1:0 literal",
    "globals()['codemode'].a()": "a 1:0 direct",
    "call_tool('fs__a', {})": "fs__a 1:0 literal",
    "await call_tool(name='fs__a', arguments={})": "fs__a 1:6 literal",
    "call_tool(n, {})": "? 1:0 dynamic",
    "call_tool(f'fs__{x}', {})": "? 1:0 dynamic",
    "ct = call_tool\nct('a')": "a 2:0 literal",
    "for n in ['a', 'b']:\n    call_tool(n)": "? 2:4 dynamic",
    "n = 'a'\nif c: n = f()\ncodemode[n]()": "? 3:0 dynamic",
    "f = getattr(codemode, x)\nf()": "? 1:4 dynamic",
    "[getattr(codemode, n)() for n in dir(codemode)]": "? 1:1 dynamic",
    "globals()[x]()": "? 1:0 dynamic",
    "vars(codemode).values()": "? 1:0 dynamic",
    # Other names for the same
    "a = b = fs__a\na(); b()": "fs__a 2:0 alias, fs__a 2:5 alias",
    "cm = codemode\ncm.a()\ncm['b']()": "a 2:0 alias, b 3:0 alias",
    "a, b = fs__a, codemode.b\na()\nb()": "fs__a 2:0 alias, b 3:0 alias",
    "f: object = fs__a\nf()": "fs__a 2:0 alias",
    "(f := fs__a)(1)\nf(2)": "fs__a 1:0 direct, fs__a 2:0 alias",
    "import codemode\ncodemode.a()": "a 2:0 direct",
    "import codemode as cm\ncm.a()": "a 2:0 alias",
    "from codemode import a as b\nb()": "a 2:0 alias",
    "f = fs__a\nf = fs__b\nf()": "fs__b 3:0 alias",
    "f = fs__a\nif c:\n    f = fs__b\nf()": "fs__b 4:0 alias, fs__a 4:0 alias",
    "f = no\nwhile 1:\n    f()\n    f = fs__a": "fs__a 3:4 alias",
    "def g():\n    global f\n    f = fs__a\ng()\nf()": "fs__a 5:0 alias",
    "def g():\n    f = no\n    def h():\n        nonlocal f\n        f = fs__a\n    h()\n    f()": (
        "fs__a 7:4 alias"
    ),
    "def g(cm):\n    cm.a()\ng(codemode)": "a 2:4 alias",
    "def g(*, f):\n    f()\ng(f=fs__a)": "fs__a 2:4 alias",
    "def g(f=fs__a):\n    f()\ng()": "fs__a 2:4 alias",
    "(lambda cm: cm.a())(codemode)": "a 1:12 alias",
    "g = lambda f: f(1)\ng(fs__a)": "fs__a 1:14 alias",
    "[y := fs__a for x in xs]\ny()": "fs__a 2:0 alias",
    "if c:\n    def fs__a(): ...\nfs__a()": "fs__a 3:0 direct",
    "fs__a()\nfs__a = 1": "fs__a 1:0 direct",
    "fs__a = 1\ndel fs__a\nfs__a()": "fs__a 3:0 direct",
    # Called by others
    "map(fs__a, xs)": "fs__a 1:4 reference",
    "from functools import partial\npartial(fs__a, x=1)()": "fs__a 2:8 reference",
    "fs__a.__call__(x=1)": "fs__a 1:0 indirect",
    "(fs__a if c else codemode.b)(1)": "fs__a 1:1 reference, b 1:17 reference",
    "d = {'rm': fs__a}\nd['rm']()": "fs__a 1:11 reference",
    "for f in (fs__a, fs__b):\n    f()": "fs__a 1:10 reference, fs__b 1:17 reference",
    "f = fs__a\nmap(f, xs)": "fs__a 2:4 reference",
    "return fs__a": "fs__a 1:7 reference",
    "other(codemode)": "? 1:6 dynamic",
    "partial(call_tool, 'a')()": "? 1:8 dynamic",
    "operator.attrgetter('a')(codemode)()": "? 1:25 dynamic",
    # Code made from text
    "exec('fs__a()')": "? 1:0 eval",
    "e = eval\ne('x')": "? 2:0 eval",
    "import builtins\nbuiltins.exec('x')": "? 2:0 eval",
    "__builtins__['eval']('x')": "? 1:0 eval",
    "getattr(__builtins__, 'eval')('x')": "? 1:0 eval",
    "map(eval, xs)": "? 1:4 eval",
    # Only looks like it
    "def f(codemode):\n    codemode.a()": "",
    "def f(fs__a):\n    fs__a()": "",
    "def f():\n    fs__a = g()\n    fs__a()\nfs__a()": "fs__a 4:0 direct",
    "codemode = mine()\ncodemode.a()": "",
    "from helpers import fs__a\nfs__a()": "",
    "import x as fs__a\nfs__a()": "",
    "for fs__a in xs: fs__a()": "",
    "[fs__a() for fs__a in xs]\nfs__a()": "fs__a 2:0 direct",
    "try: x\nexcept E as fs__a: fs__a()": "",
    "match x:\n    case {'a': fs__a, **fs__b}: fs__a(); fs__b()\n    case [*fs__c]: fs__c()": "",
    "with x as fs__a: fs__a()": "",
    "class A:\n    fs__a = 1\n    def m(self): return fs__a()": "fs__a 3:24 direct",
    "class A:\n    def fs__a(self): ...\n    fs__a()": "",
    "self.codemode.a(); x.fs__a(); self.fs__a()": "",
    "f = fs__a": "",
    "hasattr(codemode, 'a'); dir(codemode); print(codemode)": "",
    "if fs__a is not None and codemode: fs__a()": "fs__a 1:35 direct",
    "def f(x: codemode.a, y: fs__b = 1) -> fs__c: ...": "",
    "codemode.__class__; codemode.__doc__()": "",
    "def f(eval): eval('x')": "",
    "codemode.a = 1\ndel codemode.b": "",
    "lambda fs__a: fs__a()": "",
}


def shown(script, tools=None):
    found = preview(script, "python", tools)
    assert not found.fault
    return ", ".join(f"{use.tool or '?'} {use.line}:{use.column} {use.kind}" for use in found.uses)


@pytest.mark.parametrize("script", SEEN)
def test_what_is_seen(script):
    assert shown(script) == SEEN[script]


def test_with_names_only_those_count_when_they_stand_alone():
    script = "read(1)\nfs__a(2)\ncodemode.other(3)\ncall_tool('any')\nglobals()['fs__a'](4)"
    assert shown(script, ["read"]) == "read 1:0 direct, other 3:0 direct, any 4:0 literal"
    assert shown(script, []) == "other 3:0 direct, any 4:0 literal"
    assert shown(script) == "fs__a 2:0 direct, other 3:0 direct, any 4:0 literal, fs__a 5:0 literal"


def test_long_chains_hide_nothing_at_their_start():
    assert shown("fs__a()" + ".x()" * 400) == "fs__a 1:0 direct"


def test_names_that_go_round_in_circles_end():
    assert shown("a = b\nb = a\na()\nb()") == ""
    assert shown("a = fs__x\nwhile 1:\n    a = a\n    a()") == "fs__x 4:4 alias"


def test_an_fstring_over_several_lines_says_where_its_calls_are():
    assert shown('f"""\n{fs__a()}\n  and {x} {codemode.b()}"""') == "fs__a 2:1 direct, b 3:11 direct"
