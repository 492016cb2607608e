"""The wording and the place of what is wrong with a space.

========== =====================================================
EATSS-S001 a file that cannot be read, or is no UTF-8
EATSS-S003 TOML syntax
EATSS-S004 unknown key
EATSS-S005 an entry is missing, or of the wrong type
EATSS-S006 a name that cannot be one, or is used twice
EATSS-S007 an expression that cannot be parsed
EATSS-S008 an expression with what is not allowed
EATSS-S009 unknown name
EATSS-S010 constants that depend on each other
EATSS-S011 an iterator or a constant that uses a later iterator
EATSS-S012 a value of the wrong kind
EATSS-S013 division by zero
EATSS-S014 a value over 2^53
EATSS-S015 a step of 0
EATSS-S016 an iterator without values
EATSS-S017 no point is left
EATSS-S018 that is no point of the space
EATSS-S019 a generator's arguments
EATSS-S020 a sample of no size
EATSS-S023 a value that a decision cannot have
========== =====================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from eatss.diagnostics import Diagnostic, InputError, SourceSpan
from eatss.gpu.findings import Origin, finding
from eatss.space.expressions import ExpressionFault
from eatss.space.nouns import Space


def origin_of(space: Space) -> Origin:
    """Return what the messages about a space name, and its text where it came from a file."""
    return Origin(label=space.source or f"the space {space.name}", text=space.text or None)


def expression_finding(fault: ExpressionFault, origin: Origin) -> Diagnostic:
    """Return a finding about a part of an expression, pointed at where that is in a file."""
    found = finding(fault.code, fault.message, fault.path, origin, fault.hint)
    if found.span is None or found.source_line is None:
        where = f'in "{fault.text}", column {fault.start + 1}' if fault.text else ""
        named = ".".join(fault.path)
        message = f"{origin.label}: {named}: {fault.message}" if named else fault.message
        return replace(found, message=f"{message} ({where})" if where else message)
    return _pointed(found, found.span, found.source_line, fault)


@contextmanager
def placed(space: Space) -> Iterator[None]:
    """Turn what expressions raise into errors with a place in the space's file."""
    try:
        yield
    except ExpressionFault as fault:
        raise InputError(expression_finding(fault, origin_of(space))) from None


def _pointed(found: Diagnostic, span: SourceSpan, line: str, fault: ExpressionFault) -> Diagnostic:
    """Return the finding at the part of the expression, where its text stands on the key's line."""
    after = re.compile(r"\s*=\s*").match(line, span.end_column - 1)
    start = line.find(fault.text, after.end() if after else span.end_column - 1)
    if not fault.text or start < 0:
        return found
    column = start + fault.start + 1
    place = replace(span, column=column, end_column=max(start + fault.end, column) + 1)
    return replace(found, span=place)
