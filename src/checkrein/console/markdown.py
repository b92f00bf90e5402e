"""Markdown of a model as HTML: made of our own tags alone; nothing of it runs, loads or leads back in here.

`Growing` is for an answer that is still being written: only what changed is made again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from html import escape
from time import thread_time
from typing import Any, Literal
from urllib.parse import urlsplit

from markupsafe import Markup

from checkrein.console.highlighting import code_spans
from checkrein.console.shown import visible

# Past this an answer is shown as plain text: reading Markdown must not keep the server busy.
LONGEST = 400_000
_KEPT = 20_000
# How long the code of one text is worked on to colour it; what follows then is plain.
_COLOURING = 1.0
_SCHEMES = ("http", "https", "mailto")
_BARE = re.compile(r"https?://[^\s<>\"'`\\\x00-\x20]+")
# What ends a sentence or a bracket, not an address.
_TRAILING = ".,;:!?)]}*_"
# Joiners and selectors that make one sign of several, where such signs stand: they mislead nobody there.
_SIGN = "\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff\u00a9\u00ae#*0-9"
_HARMLESS = re.compile(
    f"(?<=[{_SIGN}])[\ufe0e\ufe0f]|(?<=[{_SIGN}\ufe0f])\u200d(?=[{_SIGN}])"
    "|(?<=[\u0600-\u06ff\u0900-\u0dff])[\u200c\u200d](?=[\u0600-\u06ff\u0900-\u0dff])"
)


def readable(text: str) -> str:
    """The text with everything that could mislead its reader spelled out; signs made of several stay one."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    pieces, at = [], 0
    for found in _HARMLESS.finditer(text):
        pieces += [visible(text[at : found.start()]), found[0]]
        at = found.end()
    return "".join([*pieces, visible(text[at:])])


def rendered(text: str) -> Markup:
    """A whole text."""
    return Markup("").join(blocks(text))


def blocks(text: str) -> list[Markup]:
    """The same, one piece for each block at the top."""
    return list(_kept(text) if len(text) <= _KEPT else _made(text))


def _made(text: str) -> tuple[Markup, ...]:
    return tuple(html for html, _ in _parts(readable(text)))


# Pages of a conversation show the same messages again and again.
_kept = lru_cache(maxsize=1_000)(_made)


class Growing:
    """A text that grows at its end. What stands before its last block is made once."""

    def __init__(self) -> None:
        self._tail = ""
        self._stable = 0
        # How much was made at the last step: whoever shows it takes longer pauses where this is much.
        self.size = 0

    def add(self, text: str) -> None:
        self._tail += text

    def step(self) -> tuple[int, list[Markup]]:
        """The number of the first block that may have changed, and the blocks from there on."""
        text = readable(self._tail)
        found = _parts(text)
        first, made = self._stable, [html for html, _ in found]
        self.size = sum(map(len, made))
        self._forget([line for _, line in found])
        return first, made

    def _forget(self, begins: list[int]) -> None:
        """Nothing that follows changes what stands before a block whose first line is written to its end."""
        # `readable` adds no line and takes none.
        lines = self._tail.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        last = max((at for at, line in enumerate(begins) if line < len(lines) - 1), default=0)
        if last:
            self._tail = "\n".join(lines[begins[last] :])
            self._stable += last


def _parts(text: str) -> list[tuple[Markup, int]]:
    """Each block at the top, and the line it begins in."""
    parser = _parser()
    if parser is None or len(text) > LONGEST:
        return [(Markup('<pre class="plain">{}</pre>').format(text), 0)] if text.strip() else []
    env: dict[str, Any] = {}
    tokens = parser.parse(text, env)
    found, begin = [], 0
    for at, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            html = parser.renderer.render(tokens[begin : at + 1], parser.options, env)
            # INVARIANT: every tag in it is one of ours; the parser escapes all that was written.
            found.append((Markup(html), (tokens[begin].map or [0])[0]))  # noqa: S704
            begin = at + 1
    return found


@cache
def _parser() -> Any:
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        return None
    made = MarkdownIt("commonmark", {"html": False, "breaks": False, "linkify": False, "typographer": False})
    made.enable(["table", "strikethrough"])
    # An address defined elsewhere would change blocks that are made already.
    made.disable("reference")
    made.validateLink = is_harmless  # type: ignore[method-assign,assignment]
    made.core.ruler.push("bare", _link_bare)
    for name, rule in (
        ("fence", _fence),
        ("code_block", _fence),
        ("image", _image),
        ("link_open", _link_open),
    ):
        made.add_render_rule(name, rule)
    for name, tag in (("table_open", '<div class="tablebox"><table>\n'), ("table_close", "</table></div>\n")):
        made.add_render_rule(name, _always(tag))
    for name in ("th_open", "td_open"):
        made.add_render_rule(name, _cell)
    for name in ("heading_open", "heading_close"):
        made.add_render_rule(name, _heading)
    return made


def is_harmless(address: str) -> bool:
    """Whether an address leads outside, to a page or to a letter; nothing that runs, loads or stays here."""
    try:
        found = urlsplit(address.strip())
    except ValueError:
        return False
    return found.scheme.lower() in _SCHEMES and bool(found.netloc or found.scheme.lower() == "mailto")


def _always(tag: str) -> Any:
    return lambda _self, _tokens, _at, _options, _env: tag


def _cell(_self: Any, tokens: Sequence[Any], at: int, _options: Any, _env: Any) -> str:
    # How a column is aligned comes as a style, which our pages forbid.
    side = re.search(r"text-align:(left|right|center)", str(tokens[at].attrs.get("style", "")))
    return f'<{tokens[at].tag} class="to-{side[1]}">' if side else f"<{tokens[at].tag}>"


def _heading(_self: Any, tokens: Sequence[Any], at: int, _options: Any, _env: Any) -> str:
    # One level below the page's own: a model leaves out levels, and who listens to a page gets lost there.
    return f'<h2 class="{tokens[at].tag}">' if tokens[at].nesting == 1 else "</h2>\n"


def _fence(_self: Any, tokens: Sequence[Any], at: int, _options: Any, env: Any) -> str:
    words = tokens[at].info.split()
    language = words[0][:30] if words else ""
    begun, left = thread_time(), env.get("colouring", _COLOURING)
    code = "".join(
        f'<span class="t-{kind}">{escape(piece)}</span>' if kind else escape(piece)
        for kind, piece in code_spans(tokens[at].content, language, left)
    )
    env["colouring"] = left - (thread_time() - begun)
    name = escape(language)
    return (
        f'<figure class="code block"><figcaption><span>{name or "text"}</span>'
        '<button type="button" class="quiet small" data-copy-code>Copy</button></figcaption>'
        f'<pre tabindex="0" role="group" aria-label="Code{f", {name}" if name else ""}">'
        f"<code>{code}</code></pre></figure>\n"
    )


def _image(self: Any, tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
    """Nothing is loaded from elsewhere: a picture is a link to it."""
    token = tokens[at]
    words = escape(self.renderInlineAsText(token.children or [], options, env) or "without a name")
    return f"{_opened(str(token.attrs.get('src', '')))}picture: {words}</a>"


def _link_open(_self: Any, tokens: Sequence[Any], at: int, _options: Any, _env: Any) -> str:
    return _opened(str(tokens[at].attrs.get("href", "")))


def _opened(address: str) -> str:
    shown = escape(address)
    return f'<a href="{shown}" title="{shown}" target="_blank" rel="noopener noreferrer nofollow">'


def _link_bare(state: Any) -> None:
    """Addresses that stand for themselves lead there too."""
    for block in state.tokens:
        if block.type != "inline" or "://" not in block.content:
            continue
        inside, made = 0, []
        for token in block.children or []:
            inside += token.type == "link_open"
            inside -= token.type == "link_close"
            made += [token] if inside or token.type != "text" else _split(token)
        block.children = made


def _split(token: Any) -> list[Any]:
    text, at, found = token.content, 0, []
    for match in _BARE.finditer(text):
        address = match[0].rstrip(_TRAILING)
        if not is_harmless(address):
            continue
        end = match.start() + len(address)
        found += [_text(text[at : match.start()]), *_link(address)]
        at = end
    return [*found, _text(text[at:])] if found else [token]


def _link(address: str) -> list[Any]:
    opened = _token("link_open", "a", 1)
    opened.attrs = {"href": address}
    return [opened, _text(address), _token("link_close", "a", -1)]


def _text(content: str) -> Any:
    made = _token("text", "", 0)
    made.content = content
    return made


def _token(kind: str, tag: str, nesting: Literal[-1, 0, 1]) -> Any:
    from markdown_it.token import Token

    return Token(kind, tag, nesting)
