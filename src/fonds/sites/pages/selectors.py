"""XPath over a page, step by step: a model may have written it, and libxml2 has no brakes.

`//div//div//a` takes libxml2 minutes on a page of 30,000 elements, because it compares each node
of a step's result with all others. So the steps of a path are taken one by one, each over the
whole page or from single nodes, which is linear, and a path that is slow all the same is given up.

Regular expressions over the markup of a page, given up when they take too long.

The elements that the selectors of a strategy mean, whatever language they are written in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from time import monotonic
from typing import Any, Final

from lxml import etree

from fonds.errors import UsageError
from fonds.sites.models import ScrapingStrategy, StrategyType
from fonds.sites.pages.css import chained, css
from fonds.sites.pages.page import WebPage

_LONGEST: Final = 500
_XPATH_SECONDS: Final = 3.0
_MOST_ELEMENTS: Final = 20_000
"""Of a page, for a condition that looks far around each of them."""
_LITERAL: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_FAR: Final = re.compile(r"(?:following|preceding|ancestor|descendant)[\w-]*\s*::|//")
_FORWARD: Final = re.compile(r"(?:child::|descendant::)?(?:\*|[A-Za-z][\w-]*)(?:\[.*)?", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?!column\b)")


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Any:
    try:
        # No namespaces and no extensions: nothing but the functions of XPath 1.0, none of which
        # reads a file.
        return etree.XPath(expression, regexp=False, smart_strings=False)
    except etree.XPathError as error:
        raise UsageError(f"no XPath expression: {expression!r}: {error}") from None


@lru_cache(maxsize=256)
def checked(expression: str) -> str:
    """The expression, if it is one that is not refused; UsageError says why it is."""
    if not expression.strip() or len(expression) > _LONGEST:
        raise UsageError(f"an XPath expression has 1 to {_LONGEST} characters")
    _compiled(expression)
    bare = _LITERAL.sub("''", expression)
    if _VARIABLE.search(bare):
        raise UsageError(f"{expression!r} uses a variable; only $column is known")
    for condition in _conditions(bare):
        if condition.lstrip().startswith("/"):
            raise UsageError(f"{expression!r} looks at the whole page inside a condition")
        inner = "".join(_conditions(condition))
        if _FAR.search(_outside(condition)) and _FAR.search(inner):
            raise UsageError(f"{expression!r} looks around from everywhere around: too slow")
    return expression


def select(expression: str, root: Any) -> list[Any]:
    """The elements that an expression means on a page, in the order of the document."""
    checked(expression)
    found: dict[Any, None] = {}
    deadline = monotonic() + _XPATH_SECONDS
    branches = _split(expression, "|")
    for branch in branches:
        found |= dict.fromkeys(_walked(branch.strip(), root, deadline))
    if len(branches) == 1:
        return list(found)
    return [element for element in root.iter(etree.Element) if element in found]


def value(expression: str, element: Any, *, column: int = 1) -> str:
    """What an expression says, seen from an element; $column is the cell it stands in."""
    result = _evaluated(checked(expression), element, column=column)
    if isinstance(result, list):
        result = result[0] if result else ""
    if _is_element(result):
        result = "".join(result.itertext())
    return " ".join(str(result)[:4000].split()) if not isinstance(result, bool) else ""


def _evaluated(expression: str, element: Any, *, column: int = 1) -> Any:
    try:
        return _compiled(expression)(element, column=column)
    except etree.XPathError as error:
        raise UsageError(f"the XPath expression {expression!r} fails: {error}") from None


def _walked(path: str, root: Any, deadline: float) -> list[Any]:
    steps = _steps(path)
    if steps is None:
        return _elements(_evaluated(path, root))
    current: list[Any] | None = None
    while steps:
        _refuse_late(path, deadline)
        ahead = 0
        while ahead < len(steps) and _FORWARD.fullmatch(steps[ahead][1]):
            ahead += 1
        if ahead:
            current = _forward(steps[:ahead], current, root)
            steps = steps[ahead:]
            continue
        if current is None:
            return _elements(_evaluated(path, root))
        current = _each(steps[0], current, path, deadline)
        steps = steps[1:]
    return current or []


def _forward(steps: Sequence[tuple[str, str]], current: list[Any] | None, root: Any) -> list[Any]:
    """Several steps downwards in one pass over the page."""
    sets = []
    for _, step in steps:
        if _FAR.search(_LITERAL.sub("", step)) and _size(root) > _MOST_ELEMENTS:
            raise UsageError(f"the page is too large for the condition of {step!r}")
        test = step.removeprefix("child::").removeprefix("descendant::")
        sets.append(set(_elements(_evaluated(f"//{test}", root))))
    joints = [
        " " if jump == "//" or step.startswith("descendant::") else ">" for jump, step in steps
    ]
    if current is None:
        if joints[0] == ">":
            sets[0] &= {root}
        return chained(root, joints[1:], lambda index, element: element in sets[index])
    sets.insert(0, set(current))
    return chained(root, joints, lambda index, element: element in sets[index])


def _each(step: tuple[str, str], current: list[Any], path: str, deadline: float) -> list[Any]:
    jump, test = step
    if test.startswith("@") or test in {"text()", "node()", "."}:
        return current
    relative = f".//{test}" if jump == "//" else f"./{test}"
    found: dict[Any, None] = {}
    for element in current:
        _refuse_late(path, deadline)
        found |= dict.fromkeys(_elements(_evaluated(relative, element)))
    return list(found)


def _refuse_late(path: str, deadline: float) -> None:
    if monotonic() > deadline:
        raise UsageError(f"{path!r} takes too long on this page")


def _elements(result: Any) -> list[Any]:
    if not isinstance(result, list):
        raise UsageError("the XPath expression gives no elements")
    return [each for each in result if _is_element(each) and isinstance(each.tag, str)]


def _is_element(result: Any) -> bool:
    return isinstance(result, etree._Element)  # noqa: SLF001 — lxml's only name for it


def _size(root: Any) -> int:
    return sum(1 for _ in root.iter())


def _steps(path: str) -> list[tuple[str, str]] | None:
    """The steps of a path from the root, each with the slashes before it; None for others."""
    path = path.removeprefix(".") if path.startswith("./") else path
    if not path.startswith("/"):
        return None
    steps: list[tuple[str, str]] = []
    jump = ""
    for part in _split(path, "/")[1:]:
        if not part:
            jump = "//"
            continue
        steps.append((jump or "/", part.strip()))
        jump = ""
    return steps


def _split(text: str, at: str) -> list[str]:
    """Cut where a character stands outside of brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "[(":
            depth += 1
        elif character in "])":
            depth -= 1
        elif character == at and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]


def _conditions(text: str) -> list[str]:
    """What stands in the outermost square brackets."""
    found, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character == "[":
            start = position + 1 if depth == 0 else start
            depth += 1
        elif character == "]":
            depth -= 1
            if depth == 0:
                found.append(text[start:position])
    return found


def _outside(text: str) -> str:
    for condition in _conditions(text):
        text = text.replace(f"[{condition}]", "[]")
    return text


_TEXT: Final = 4 << 20
_MOST: Final = 20_000
_MOST_REPEATS: Final = 5_000
_PATTERN_SECONDS: Final = 2.0
"""Seconds; the standard library's engine cannot be stopped, whatever it is given."""


@lru_cache(maxsize=64)
def pattern(expression: str) -> Any:
    """The expression, compiled; UsageError says what is wrong with it."""
    if not expression or len(expression) > _LONGEST:
        raise UsageError(f"a regular expression has 1 to {_LONGEST} characters")
    # Its stubs are a package of their own, and few strategies need it.
    import regex  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        re.compile(expression)
        _refuse_large(expression)
        return regex.compile(expression)
    except (re.error, regex.error, OverflowError, RecursionError, ValueError) as error:
        raise UsageError(f"no regular expression: {expression!r}: {error}") from None


def _refuse_large(expression: str) -> None:
    # Counted repeats are written out when compiled: three of them, each in the other, take all
    # memory there is. Other braces would be this engine's fuzzy matching.
    repeats = 1
    for brace in re.finditer(r"(?<!\\)\{([^}]*)\}?", expression):
        counts = re.fullmatch(r"(\d*),?(\d*)", brace[1])
        if counts is None:
            raise UsageError(f"the braces in {expression!r} are no repeat: escape them")
        repeats *= max(1, *(int(each or 1) for each in counts.groups()))
    if repeats > _MOST_REPEATS:
        raise UsageError(f"the regular expression {expression!r} repeats too much")


def matches(expression: str, text: str) -> Iterator[tuple[int, str]]:
    """Where each match begins and its first group, or all of it where it has none."""
    compiled = pattern(expression)
    try:
        for found, match in enumerate(compiled.finditer(text[:_TEXT], timeout=_PATTERN_SECONDS)):
            if found >= _MOST:
                return
            told = match[1] if compiled.groups and match[1] is not None else match[0]
            yield match.start(), told
    except TimeoutError:
        raise UsageError(f"the regular expression {expression!r} takes too long") from None


def check(strategy: ScrapingStrategy) -> None:
    """Raise UsageError, saying what is wrong, for a strategy whose expressions cannot be read."""
    for selector in strategy.pdf_link_selectors:
        if strategy.strategy_type is StrategyType.REGEX:
            pattern(selector)
        else:
            _compile(selector, strategy.strategy_type)
    if strategy.pagination_selector:
        _compile(strategy.pagination_selector, strategy.strategy_type)
    for expression in (strategy.metadata_extraction or {}).values():
        checked(expression)


def elements(selector: str, page: WebPage, kind: StrategyType = StrategyType.CSS) -> list[Any]:
    """The elements that a selector means: CSS, or XPath where it is one or is said to be one."""
    if _is_xpath(selector, kind):
        return select(selector, page.tree)
    return css(selector).select(page.tree)


def _compile(selector: str, kind: StrategyType) -> None:
    if _is_xpath(selector, kind):
        checked(selector)
    else:
        css(selector)


def _is_xpath(selector: str, kind: StrategyType) -> bool:
    # No CSS selector begins like this, and advisors mix the two.
    return kind is StrategyType.XPATH or selector.lstrip().startswith(("/", "(", "./"))
