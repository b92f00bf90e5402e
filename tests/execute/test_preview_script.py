"""JavaScript and TypeScript as authors write them, and as somebody writes who does not want to be read."""

import pytest

from checkrein.execute.preview import preview

# script -> what is seen, as "tool line:column kind"; "?" where the text does not say which tool.
SEEN = {
    # Plain calls
    "codemode.a({})": "a 1:0 direct",
    "codemode?.a?.({})": "a 1:0 direct",
    "codemode['a b']({})": "a b 1:0 literal",
    "new codemode.a({})": "a 1:0 direct",
    "globalThis.codemode.a({})": "a 1:0 direct",
    "globalThis['code' + 'mode']['a']({})": "a 1:0 literal",
    "const s = `${await codemode.a({})} and codemode.b({})`;": "a 1:19 direct",
    "/* codemode.a() */ // codemode.b()\ncodemode.c()": "c 2:0 direct",
    "<!-- codemode.a()\ncodemode.b()": "b 2:0 direct",
    "// a note\u2028codemode.a()": "a 2:0 direct",
    "// a note\rcodemode.a()": "a 2:0 direct",
    "x = 1\r\n\r\n  codemode.a()": "a 3:2 direct",
    "\ufeffcodemode.a()": "a 1:0 direct",
    "for await (const x of codemode.a({})) codemode.b(x)": "a 1:22 direct, b 1:38 direct",
    "async function* g() { yield* codemode.a({}); }": "a 1:29 direct",
    "const o = { async run() { await codemode.a() }, get b() { return codemode.c() } }": (
        "a 1:32 direct, c 1:65 direct"
    ),
    "class A { #x = codemode.a(); static { codemode.b() } }": "a 1:15 direct, b 1:38 direct",
    "try { codemode.a() } catch { codemode.b() } finally { codemode.c() }": (
        "a 1:6 direct, b 1:29 direct, c 1:54 direct"
    ),
    "label: while (true) { codemode.a(); break label }": "a 1:22 direct",
    "const {x = codemode.a()} = y": "a 1:11 direct",
    "(() => codemode.a())()": "a 1:7 direct",
    "codemode.a().b.c()?.d": "a 1:0 direct",
    "codemode.a(codemode.b(codemode.c()))": "a 1:0 direct, b 1:11 direct, c 1:22 direct",
    # Names put together
    "codemode['\\x61\\u0062\\u{63}']()": "abc 1:0 literal",
    "codemode.d\\u0065l()": "del 1:0 direct",
    "\\u0063odemode.del()": "del 1:0 direct",
    "const n = 'a'; codemode[n]()": "a 1:15 literal",
    "const p = 'de'; codemode[`${p}l`]()": "del 1:16 literal",
    "let n = 'a'; n += 'b'; codemode[n]()": "ab 1:23 literal",
    "codemode[['a', 'b'].join('_')]()": "a_b 1:0 literal",
    "codemode['a'.concat('b', 'c')]()": "abc 1:0 literal",
    "codemode[(('a' as any) + ('b'))!]()": "ab 1:0 literal",
    "let n = 'a'; if (c) n = f(); codemode[n]()": "? 1:29 dynamic",
    "codemode[c ? 'a' : 'b']()": "? 1:0 dynamic",
    "codemode['a' + x]()": "? 1:0 dynamic",
    "codemode[`a${x}`]()": "? 1:0 dynamic",
    "const f = codemode[x]; f()": "? 1:10 dynamic",
    "Object.keys(codemode).map((k) => codemode[k]({}))": "? 1:33 dynamic",
    "Reflect.get(codemode, 'a')({})": "a 1:0 literal",
    "Reflect.get(codemode, x)({})": "? 1:0 dynamic",
    "globalThis[x]()": "? 1:0 dynamic",
    # Other names for the same
    "const f = codemode.a; const g = f; g()": "a 1:35 alias",
    "const cm = codemode; cm.a(); cm['b']()": "a 1:21 alias, b 1:29 alias",
    "const { a } = codemode; a()": "a 1:24 alias",
    "const { a = no, 'b': c, ['d' + 'e']: f, ...rest } = codemode; a(); c(); f(); rest.g()": (
        "a 1:62 alias, b 1:67 alias, de 1:72 alias, g 1:77 alias"
    ),
    "const { [x]: f } = codemode; f()": "? 1:8 dynamic",
    "let f; ({ a: f } = codemode); f()": "a 1:30 alias",
    "const { codemode: { a } } = globalThis; a()": "a 1:40 alias",
    "const { codemode: cm } = globalThis; cm.a()": "a 1:37 alias",
    "const [f, , g] = [codemode.a, 1, codemode.b]; f(); g()": "a 1:46 alias, b 1:51 alias",
    "f = codemode.a; f()": "a 1:16 alias",
    "let f = codemode.a; f = codemode.b; f()": "b 1:36 alias",
    "let f = codemode.a; if (c) f = codemode.b; f()": "b 1:43 alias, a 1:43 alias",
    "let f; if (c) { f = codemode.a } else { f = codemode.b } f()": "b 1:57 alias, a 1:57 alias",
    "let f = no; for (;;) { f(); f = codemode.a }": "a 1:23 alias",
    "let f; go(() => { f = codemode.a }); f()": "a 1:37 alias",
    "let f = codemode.a; f ||= codemode.b; f()": "b 1:38 alias, a 1:38 alias",
    "((cm) => cm.a())(codemode)": "a 1:9 alias",
    "(({ a }) => a())(codemode)": "a 1:12 alias",
    "(function (cm) { cm.a() })(codemode)": "a 1:17 alias",
    "go(codemode); async function go(cm) { await cm.a() }": "a 1:44 alias",
    "const go = (f, x) => f(x); go(codemode.a, 1)": "a 1:21 alias",
    "function go(cm = codemode, f = codemode.b) { cm.a(); f() } go()": "a 1:45 alias, b 1:53 alias",
    "const tag = codemode.a; tag`x`": "a 1:24 alias",
    "(f = codemode.a)({}); f()": "a 1:0 direct, a 1:22 alias",
    # Called by others
    "codemode.a.call(null, {})": "a 1:0 indirect",
    "codemode.a.bind(codemode)({})": "a 1:0 indirect",
    "Reflect.apply(codemode.a, codemode, [])": "a 1:14 reference",
    "Object.freeze(codemode).a()": "? 1:14 dynamic",
    "codemode['a']['call'](null)": "a 1:0 indirect",
    "const { a } = codemode; a.apply(null, [])": "a 1:24 indirect",
    "codemode[x].call(null)": "? 1:0 dynamic",
    "xs.map(codemode.a)": "a 1:7 reference",
    "const { a } = codemode; xs.map(a)": "a 1:31 reference",
    "const api = { rm: codemode.a }; api.rm()": "a 1:18 reference",
    "const { a } = codemode; go({ a })": "a 1:29 reference",
    "const f = x || codemode.a; f()": "a 1:15 reference",
    "return codemode.a": "a 1:7 reference",
    "setTimeout(codemode.a, 10)": "a 1:11 reference",
    "codemode.a.length": "a 1:0 reference",
    "other(codemode)": "? 1:6 dynamic",
    "const all = { ...codemode }; all.a()": "? 1:17 dynamic",
    "Object.values(codemode).forEach((f) => f())": "? 1:14 dynamic",
    "new Proxy(codemode, {})": "? 1:10 dynamic",
    "with (codemode) { a() }": "? 1:6 dynamic",
    "window.x = { codemode }": "? 1:13 dynamic",
    # Code made from text
    "(0, eval)('x')": "? 1:0 eval",
    "globalThis.eval('x')": "? 1:0 eval",
    "const e = eval; e('x')": "? 1:16 eval",
    "Function('x')()": "? 1:0 eval",
    "(() => {}).constructor('x')()": "? 1:0 eval",
    "const F = Object.getPrototypeOf(async () => {}).constructor; new F('x')()": "? 1:61 eval",
    "[].constructor.constructor('x')()": "? 1:0 eval",
    "codemode.constructor.constructor('x')()": "? 1:0 eval",
    "xs.map(eval)": "? 1:7 eval",
    "setTimeout('codemode.a()', 1)": "? 1:0 eval",
    # Only looks like it
    "typeof codemode.a === 'function' && codemode.a()": "a 1:36 direct",
    "if (codemode.a) codemode.a()": "a 1:16 direct",
    "if ('a' in codemode) console.log(Object.keys(codemode), codemode)": "",
    "codemode.a = 1; delete codemode.b; codemode;": "",
    "codemode.hasOwnProperty('a')": "",
    "const f = codemode.a": "",
    "const { a } = codemode": "",
    "function f(codemode) { codemode.a() }": "",
    "const f = (codemode) => codemode.a(); f(1)": "",
    "const f = codemode => codemode.a()": "",
    "const f = ({ codemode }) => codemode.a()": "",
    "{ const codemode = mine(); codemode.a() } codemode.b()": "b 1:42 direct",
    "codemode.a(); let codemode = 1": "",
    "function f() { if (x) { var codemode = 1 } codemode.a() }": "",
    "try {} catch (codemode) { codemode.a() }": "",
    "for (const codemode of xs) codemode.a()": "",
    "import codemode from 'x'; codemode.a()": "",
    "import { codemode as x } from 'x'; codemode.a()": "a 1:35 direct",
    "codemode = {}; codemode.a()": "a 1:15 direct",
    "class codemode { static a() {} } codemode.a()": "",
    "const codemode = globalThis.codemode; codemode.a()": "a 1:38 alias",
    "(function codemode() { codemode.a() })()": "",
    "this.codemode.a(); x['codemode'].a(); x.codemode?.a()": "",
    "let f = codemode.a; f = (x) => x; f()": "",
    "const f = (a) => a(); f(1)": "",
    "const eval2 = (eval) => eval('x')": "",
    # TypeScript
    "(codemode as any).a({})": "a 1:0 direct",
    "(<any>codemode).a({})": "a 1:0 direct",
    "await codemode.a<string>({})": "a 1:6 direct",
    "const r: X = await codemode['a']<T[]>({} as Y)": "a 1:19 literal",
    "const f = codemode.a as (x: string) => void; f('x')": "a 1:45 alias",
    "(codemode satisfies T).a!({})": "a 1:0 direct",
    "let t: typeof codemode.a; type T = typeof codemode.b; interface I { codemode: { a(): void } }": "",
    "declare const codemode: { a(x: object): Promise<string> };\nawait codemode.a({})": "a 2:6 direct",
    "enum E { A = 'a' }\nfunction f<T>(x: T, codemode?: T): void { codemode.a() }": "",
    "abstract class A { constructor(private codemode: X) { codemode.a(); } }": "",
    "const go = async <T,>(cm: typeof codemode) => cm.a(); go(codemode)": "a 1:46 alias",
    "export default async function main() { return codemode.a() }": "a 1:46 direct",
}


def shown(script, language="typescript"):
    found = preview(script, language)
    assert not found.fault
    return ", ".join(f"{use.tool or '?'} {use.line}:{use.column} {use.kind}" for use in found.uses)


@pytest.mark.parametrize("script", SEEN)
def test_what_is_seen(script):
    assert shown(script) == SEEN[script]


def test_both_languages_are_read_alike():
    for script, seen in SEEN.items():
        assert shown(script, "javascript") == seen


def test_half_a_character_in_a_name_does_no_harm():
    assert shown("codemode['\\ud83d']()") == "\ufffd 1:0 literal"
    assert shown("codemode['\\ud83d\\ude42']()") == "🙂 1:0 literal"
    assert shown("codemode['\\u{ffffffffff}']()") == "\ufffd 1:0 literal"


def test_long_chains_hide_nothing_at_their_start():
    script = "codemode.a({})" + ".then((x) => x)" * 2000
    assert shown(script) == "a 1:0 direct"


def test_names_that_go_round_in_circles_end():
    assert shown("let a = b; let b = a; a(); b()") == ""
    assert shown("let a = codemode.x; while (1) { a = a; a() }") == "x 1:39 alias"
