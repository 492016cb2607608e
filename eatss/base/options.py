"""Options of the user, each declared once: a field of a noun, or a parameter of a command.

What the annotation says beside the type is how the command line has it::

    @dataclass(frozen=True, kw_only=True)
    class CodeRequest:
        stages: Annotated[int | None, option(metavar="N", min=1, help="...")] = None

A command with a parameter ``wanted: Asked[CodeRequest]`` has the options of all such fields. A
function of :func:`spelled_out` has all fields as keywords, for types too.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, fields
from functools import partial, wraps
from types import MappingProxyType
from typing import Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar, cast

from eatss.base.diagnostics import InputError, input_error
from eatss.base.frozen import Names, fixed

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S")

Words: TypeAlias = list[str] | None
"""The kind of an option that may be given several times."""


OF_FIELD = object()
"""Stands for the default of a field."""


@fixed
class Option:
    """How the command line has a value.

    Attributes:
        words: How it is spelled, ``"--gpu -g"``; by default like the field.
        help: What it is, in a sentence.
        metavar: How a value is written in the help.
        panel: The part of the help that it stands in.
        kind: The type of what is typed, where that is not the type of the field.
        default: What is typed where nothing is, where that is not the default of the field.
        made: Makes the value of the field of the value of the option.
        parser: Makes each value of the word that is typed.
        min: The least number.
        max: The largest.
        hidden: Whether the help leaves it out.
        is_argument: Whether it is told by its place.
        show_default: Whether the help shows the default.
    """

    words: str = ""
    _: KW_ONLY
    help: str = ""
    metavar: str | None = None
    panel: str | None = None
    kind: Any = None
    default: Any = OF_FIELD
    made: Callable[[Any], Any] | None = None
    parser: Callable[[str], Any] | None = None
    min: float | None = None
    max: float | None = None
    hidden: bool = False
    is_argument: bool = False
    show_default: bool = True


option = Option
"""Return an :class:`Option` that is spelled so."""

argument = partial(Option, is_argument=True)
"""Return an :class:`Option` that is told by its place."""


@fixed
class Asked(Generic[T]):
    """What a command line asks of a noun: the fields that are given."""

    noun: Callable[..., T]
    fields: Mapping[str, Any]

    def made(self, **others: Any) -> T:
        """Return the noun, with what else is known of it."""
        return self.noun(**self.fields, **others)


def taken(noun: type[T], keywords: Mapping[str, Any], **others: Any) -> T:
    """Return a noun made of those keywords that are fields of it, and of others."""
    names = {field.name for field in fields(noun)}  # type: ignore[arg-type]
    return noun(**{name: keywords[name] for name in keywords if name in names}, **others)


def changed(noun: object, *, but: Sequence[str] = ()) -> Names:
    """Return the names of those fields of a noun that say more than by default.

    Args:
        noun: a dataclass.
        but: fields to leave out.
    """
    values = {field: getattr(noun, field.name) for field in fields(noun)}  # type: ignore[arg-type]
    return tuple(
        field.name
        for field, value in values.items()
        if field.name not in but and value not in (field.default, (), [], {})
    )


class Keywords:
    """Base of a dataclass with all arguments of a function, which inherits the nouns of most."""

    def __post_init__(self) -> None:
        """Check nothing: each noun does, when it is made."""

    def of(self, noun: type[T], **others: Any) -> T:
        """Return a noun made of the keywords that are fields of it, and of others."""
        return taken(noun, vars(self), **others)


class _Types(inspect.Signature):
    """A signature that shows types without how the command line has them, once it is asked."""

    __slots__ = ()

    @classmethod
    def of(cls, whole: inspect.Signature) -> _Types:
        return cls([*whole.parameters.values()], return_annotation=whole.return_annotation)

    @property
    def parameters(self) -> MappingProxyType[str, inspect.Parameter]:
        known = super().parameters
        return MappingProxyType(
            {name: one.replace(annotation=_type(one.annotation)) for name, one in known.items()}
        )


def _type(annotation: Any) -> Any:
    """Return ``int`` for ``Annotated[int, option(...)]``, both as they are written."""
    if isinstance(annotation, str):
        match ast.parse(annotation, mode="eval").body:
            case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[written, *_])):
                return ast.unparse(written)
    return annotation


def shows_types(noun: type[T]) -> type[T]:
    """Have ``help()`` and IDEs show the types of fields without how the command line has them."""
    made = vars(noun)["__init__"]
    made.__signature__ = _Types.of(inspect.signature(made))
    return noun


def spelled_out(
    arguments: Callable[P, T], *nouns: type
) -> Callable[[Callable[[T], S]], Callable[P, S]]:
    """Give a function the fields of a dataclass as arguments: for types, ``help()`` and IDEs.

    Args:
        arguments: the dataclass, which the function gets. What it has of nouns comes last.
        nouns: dataclasses that describe their fields under ``Attributes:``; the documentation of
            the function has that in the place of ``**options``.
    """
    own = vars(arguments)["__annotations__"]
    shared = {one.name: noun for noun in nouns for one in fields(noun) if one.name not in own}
    known = inspect.signature(arguments).parameters
    parameters = [known[name] for name in (*own, *shared)]

    def with_arguments(function: Callable[[T], S]) -> Callable[P, S]:
        signature = inspect.signature(function).replace(parameters=parameters)

        @wraps(function)
        def checked(*given: P.args, **named: P.kwargs) -> S:
            try:
                signature.bind(*given, **named)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            return function(arguments(*given, **named))

        lines = [_description(noun, name) for name, noun in shared.items()]
        before, mark, after = (inspect.getdoc(function) or "").partition("    **options: ")
        assert mark
        checked.__doc__ = before + "".join(lines) + after.partition("\n")[2]
        checked.__signature__ = _Types.of(signature)  # type: ignore[attr-defined]
        checked.__annotations__ = {one.name: one.annotation for one in parameters}
        return checked

    return with_arguments


def _description(noun: type, name: str) -> str:
    """Return what the documentation of a noun says of a field, with its name."""
    for home in noun.__mro__:
        lines = (
            (inspect.getdoc(home) or "").splitlines()
            if name in vars(home).get("__annotations__", ())
            else []
        )
        starts = [at for at, line in enumerate(lines) if line.startswith(f"    {name}: ")]
        for start in starts:
            end = next(
                at for at in range(start + 1, len(lines) + 1)
                if at == len(lines) or not lines[at].startswith(" " * 8)
            )  # fmt: skip
            return "".join(f"{line}\n" for line in lines[start:end])
    raise LookupError(f"{noun.__name__} does not describe {name}")


_KERNEL = re.compile(r"\s*(k\w*)\s*:(.*)", re.DOTALL)
_NUMBER = re.compile(r"\s*(?:([A-Za-z_]\w*)\s*=\s*)?(-?\d{1,18})\s*")


def _misspelt(option: str, text: str, hint: str) -> InputError:
    return input_error("EATSS-C004", f"{option} is '{text}'", hint=hint)


def _numbers(
    option: str,
    hint: str,
    texts: Sequence[str],
    *,
    of_kernels: bool = False,
    in_order: bool = False,
) -> dict[str, Any]:
    """Turn values of an option, ``i=32,j=64``, into what the API takes.

    Args:
        option: its name.
        hint: what to write.
        texts: its values.
        of_kernels: whether ``k0:i=32`` says it of one kernel.
        in_order: whether ``8,32`` says it in the order of the loops.

    Raises:
        InputError: ``EATSS-C004``.
    """
    found: dict[str, Any] = {}
    for text in texts:
        match = _KERNEL.fullmatch(text) if of_kernels else None
        kernel, rest = (None, text) if match is None else match.groups()
        parts = [_NUMBER.fullmatch(part) for part in rest.split(",")]
        pairs = [(one[1], int(one[2])) for one in parts if one is not None]
        named = [name for name, _ in pairs if name]
        if len(pairs) < len(parts) or (len(named) < len(pairs) and (named or not in_order)):
            raise _misspelt(option, text, hint)
        if not named:
            found[kernel or ""] = tuple(value for _, value in pairs)
        elif kernel is None:
            found |= pairs
        else:
            known = found.get(kernel)
            found[kernel] = dict(known if isinstance(known, dict) else {}) | dict(pairs)
    return found


parse_tiles = partial(
    _numbers,
    "--tile",
    "write loops with sizes, like --tile i=32,j=64, or for one kernel --tile k0:i=32,j=64",
    of_kernels=True,
)
"""Turn values of ``--tile`` (``i=32,j=64``, ``k0:i=32``) into what the API takes."""

parse_blocks = partial(
    _numbers,
    "--block",
    "write threads in the order of the loops, like --block 8,32, or by loop, like "
    "--block i=8,j=32, or for one kernel --block k0:8,32",
    of_kernels=True,
    in_order=True,
)
"""Turn values of ``--block`` (``8,32``, ``k0:8,32``, ``i=8,j=32``) into what the API takes."""


def parse_numbers(option: str, example: str, texts: Sequence[str]) -> dict[str, int]:
    """Turn values of ``--param`` or ``--share`` (``k=32``) into what the API takes.

    Raises:
        InputError: ``EATSS-C004``, a part is no name with a number.
    """
    return _numbers(
        option, f"write a name and a number of up to 18 digits, like {option} {example}", texts
    )


def parse_placements(texts: Sequence[str]) -> dict[str, str]:
    """Turn values of ``--place`` (``A=shared``, ``A[i][k]=l1``) into what the API takes.

    Raises:
        InputError: ``EATSS-C004``.
    """
    placements = {}
    for text in texts:
        name, _, memory = text.rpartition("=")
        if not name.strip() or memory.strip() not in ("l1", "shared"):
            hint = (
                "write an array or a reference and shared or l1, like --place A=shared or "
                "--place 'A[i][k]=l1'"
            )
            raise _misspelt("--place", text, hint)
        placements[name.strip()] = memory.strip()
    return placements


def parse_fraction(option: str, text: str) -> float | Literal["auto"]:
    """Turn the value of ``--split`` or ``--warp-fraction`` into what the API takes.

    Raises:
        InputError: ``EATSS-C004``.
    """
    if text == "auto":
        return "auto"
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise _misspelt(option, text, f"write {option} auto, or a number from 0 to 1 such as 0.5")
    return value


def parse_amount(option: str, unit: str, scale: float, text: str | None) -> float | None:
    """Turn a number with its unit, which may be left out, into what the API takes.

    Raises:
        InputError: ``EATSS-C004``.
    """
    if text is None:
        return None
    try:
        return scale * float(text.removesuffix(unit))
    except ValueError:
        raise _misspelt(option, text, f"write a number, like {option} 2{unit}") from None


def parse_shared_limit(text: str | None) -> int | Literal["default", "opt-in"] | None:
    """Turn the value of ``--shared-per-block`` into what the API takes.

    Raises:
        InputError: ``EATSS-C004``.
    """
    if text is None:
        return None
    if text in ("default", "opt-in"):
        return cast("Literal['default', 'opt-in']", text)
    if not text.isdecimal():
        hint = "write default, opt-in, or a number of bytes such as 49152"
        raise _misspelt("--shared-per-block", text, hint)
    return int(text)
