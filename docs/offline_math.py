"""Formulas as plain HTML: letters, subscripts and accents, which every browser draws without a script or a font.

The documentation's formulas need no more; anything else, such as a fraction, stops the build.
"""

from __future__ import annotations

from html import escape
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

SPACED = set("=+−-<>≤≥∈≠⊙·→")
"""Signs with a space on either side, except in a subscript."""
ACCENTS = {"^": "\N{COMBINING CIRCUMFLEX ACCENT}", "~": "\N{COMBINING TILDE}"}


def setup(app: Sphinx) -> dict[str, bool]:
    """Names the renderer ``offline`` for ``html_math_renderer``."""
    app.add_html_math_renderer("offline", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(f'<span class="formula">{to_html(node.astext())}</span>')
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="formula">{to_html(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def to_html(formula: str, display: str = "inline") -> str:
    """TeX as HTML.

    Example:
        >>> to_html("s_{t-1}")
        '<i>s</i><sub><i>t</i>−1</sub>'
    """
    return _drawn(ElementTree.fromstring(convert(formula, display=display)))


def _drawn(part: Element, tight: bool = False) -> str:
    kind = part.tag.rpartition("}")[2]
    words = escape(part.text or "")
    if kind in ("math", "mrow", "mstyle"):
        return "".join(_drawn(child, tight) for child in part)
    if kind == "mi":
        is_upright = part.get("mathvariant") == "normal" or len(words) > 1
        return words if is_upright else f"<i>{words}</i>"
    if kind == "mn":
        return words
    if kind == "mo":
        return _sign(words, tight)
    if kind == "mspace":
        return "&emsp;" if part.get("width") == "2em" else "&thinsp;"
    base, *marks = part
    if kind == "mover" and marks[0].text in ACCENTS:
        return _drawn(base, tight).replace("</i>", f"{ACCENTS[marks[0].text]}</i>")
    tags = {"msub": "b", "munder": "b", "msup": "p", "mover": "p", "msubsup": "bp", "munderover": "bp"}[kind]
    drawn = (f"<su{tag}>{_drawn(mark, tight=True)}</su{tag}>" for tag, mark in zip(tags, marks, strict=True))
    return _drawn(base, tight) + "".join(drawn)


def _sign(words: str, tight: bool) -> str:
    words = words.replace("-", "−")
    if words == ",":
        return words if tight else ", "
    if tight or words not in SPACED:
        return words
    return f" {words} "
