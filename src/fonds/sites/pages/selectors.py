"""The elements that the selectors of a strategy select: CSS, XPath or regular expressions.

A model may have written them, so that each has a limit. `//div//div//a` takes libxml2 minutes on a
page of 30,000 elements, because it compares each node of a step's result with all others. So the
steps of an XPath are evaluated one by one, each over the whole page or from single nodes, which is
linear; a path that is slow nevertheless, or a slow regular expression, is aborted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from time import monotonic
from typing import Any, Final

import regex  # type: ignore[import-untyped]  # its stubs are a package of their own
from lxml import etree

from fonds.errors import UsageError
from fonds.sites.models import ScrapingStrategy, StrategyType
from fonds.sites.pages.css import chained, css
from fonds.sites.pages.page import WebPage

_MAX_LENGTH: Final = 500
_XPATH_SECONDS: Final = 3.0
_MAX_ELEMENTS: Final = 20_000
"""Elements of a page above which a condition on remote nodes is rejected."""
_LITERAL: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_REMOTE: Final = re.compile(r"(?:following|preceding|ancestor|descendant)[\w-]*\s*::|//")
_FORWARD: Final = re.compile(r"(?:child::|descendant::)?(?:\*|[A-Za-z][\w-]*)(?:\[.*)?", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?!column\b)")


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Any:
    try:
        # No namespaces and no extensions: nothing but the functions of XPath 1.0, none of which
        # reads a file.
        return etree.XPath(expression, regexp=False, smart_strings=False)
    except etree.XPathError as error:
        raise UsageError(f"{expression!r} is not an XPath expression: {error}") from None


@lru_cache(maxsize=256)
def checked(expression: str) -> str:
    """The expression; UsageError if it is invalid or too slow."""
    if not expression.strip() or len(expression) > _MAX_LENGTH:
        raise UsageError(f"an XPath expression has 1 to {_MAX_LENGTH} characters")
    _compiled(expression)
    bare = _LITERAL.sub("''", expression)
    if _VARIABLE.search(bare):
        raise UsageError(f"{expression!r} uses a variable other than $column")
    for condition in _conditions(bare):
        if condition.lstrip().startswith("/"):
            raise UsageError(f"{expression!r} starts from the whole page inside a condition")
        inner = "".join(_conditions(condition))
        if _REMOTE.search(_outside(condition)) and _REMOTE.search(inner):
            raise UsageError(
                f"{expression!r} has a condition on remote nodes inside another: too slow"
            )
    return expression


def select(expression: str, root: Any) -> list[Any]:
    """The elements that an expression selects on a page, in the order of the document."""
    checked(expression)
    selected: dict[Any, None] = {}
    deadline = monotonic() + _XPATH_SECONDS
    branches = _split(expression, "|")
    for branch in branches:
        selected |= dict.fromkeys(_walked(branch.strip(), root, deadline))
    if len(branches) == 1:
        return list(selected)
    return [element for element in root.iter(etree.Element) if element in selected]


def value(expression: str, element: Any, *, column: int = 1) -> str:
    """The text of an expression, evaluated from an element; $column is the number of its cell."""
    result = _evaluated(checked(expression), element, column=column)
    if isinstance(result, list):
        result = result[0] if result else ""
    if _is_element(result):
        result = "".join(result.itertext())
    return " ".join(str(result)[:4000].split()) if not isinstance(result, bool) else ""


def source_of(expression: str, element: Any) -> Any:
    """The element whose text is the value of an expression; None for other text."""
    try:
        result = _evaluated(checked(expression), element)
    except UsageError:
        return None
    result = next(iter(result), None) if isinstance(result, list) else result
    return result if _is_element(result) else None


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
        _check_deadline(path, deadline)
        count = 0
        while count < len(steps) and _FORWARD.fullmatch(steps[count][1]):
            count += 1
        if count:
            current = _forward(steps[:count], current, root)
            steps = steps[count:]
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
        if _REMOTE.search(_LITERAL.sub("", step)) and _size(root) > _MAX_ELEMENTS:
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
    selected: dict[Any, None] = {}
    for element in current:
        _check_deadline(path, deadline)
        selected |= dict.fromkeys(_elements(_evaluated(relative, element)))
    return list(selected)


def _check_deadline(path: str, deadline: float) -> None:
    if monotonic() > deadline:
        raise UsageError(f"{path!r} takes too long on this page")


def _elements(result: Any) -> list[Any]:
    if not isinstance(result, list):
        raise UsageError("the XPath expression selects no elements")
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
    """Split at a character outside of brackets and quotes."""
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
    """The contents of the outermost square brackets."""
    conditions, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character == "[":
            start = position + 1 if depth == 0 else start
            depth += 1
        elif character == "]":
            depth -= 1
            if depth == 0:
                conditions.append(text[start:position])
    return conditions


def _outside(text: str) -> str:
    for condition in _conditions(text):
        text = text.replace(f"[{condition}]", "[]")
    return text


_MAX_TEXT: Final = 4 << 20
_MAX_MATCHES: Final = 20_000
_MAX_REPEATS: Final = 5_000
_PATTERN_SECONDS: Final = 2.0
"""The engine of the standard library has no time limit."""


@lru_cache(maxsize=64)
def pattern(expression: str) -> Any:
    """The compiled expression; UsageError if it is invalid."""
    if not expression or len(expression) > _MAX_LENGTH:
        raise UsageError(f"a regular expression has 1 to {_MAX_LENGTH} characters")
    try:
        re.compile(expression)
        _check_repeats(expression)
        return regex.compile(expression)
    except (re.error, regex.error, OverflowError, RecursionError, ValueError) as error:
        raise UsageError(f"{expression!r} is not a regular expression: {error}") from None


def _check_repeats(expression: str) -> None:
    # Counted repeats are expanded when compiled: three nested ones take all memory. Other braces
    # would be this engine's fuzzy matching.
    repeats = 1
    for brace in re.finditer(r"(?<!\\)\{([^}]*)\}?", expression):
        counts = re.fullmatch(r"(\d*),?(\d*)", brace[1])
        if counts is None:
            raise UsageError(f"the braces in {expression!r} are not a repeat: escape them")
        repeats *= max(1, *(int(each or 1) for each in counts.groups()))
    if repeats > _MAX_REPEATS:
        raise UsageError(f"the regular expression {expression!r} repeats too much")


def matches(expression: str, text: str) -> Iterator[tuple[int, str]]:
    """The start of each match and its first group, or the whole match if it has none."""
    compiled = pattern(expression)
    try:
        results = compiled.finditer(text[:_MAX_TEXT], timeout=_PATTERN_SECONDS)
        for match in islice(results, _MAX_MATCHES):
            has_group = compiled.groups and match[1] is not None
            yield match.start(), match[1] if has_group else match[0]
    except TimeoutError:
        raise UsageError(f"the regular expression {expression!r} takes too long") from None


def check(strategy: ScrapingStrategy) -> None:
    """Raise UsageError if an expression of a strategy is invalid."""
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
    """The elements that a selector selects: CSS, or XPath by its kind or its beginning."""
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
