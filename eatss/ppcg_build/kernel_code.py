"""PPCG's kernel file read, and written again so that a card and a CPU take it.

The code of the kernels stays as PPCG wrote it, token by token, but for four things: a kernel is
``extern "C"``, so that it is found by its name; shared arrays are declared by a macro, so that a
CPU can watch them; the header, which has nothing but declarations, is left out; and for NVRTC,
which knows no statements in expressions, the least and the largest of two have a plain macro.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from eatss.frozen import frozen
from eatss.ppcg_build.integers import NotUnderstoodError
from eatss.program.tokens import Token, closing, tokens
from eatss.scops import ElementType

SHARED_MACRO = """\
// A shared array; on a CPU it begins at a place of the block's shared memory, in bytes.
#ifndef EATSS_CPU
#define EATSS_SHARED_AT(place, type, name, extents) __shared__ type name extents
#endif
"""

_PLAIN = {
    "ppcg_min(x,y)": "((x) < (y) ? (x) : (y))",
    "ppcg_max(x,y)": "((x) > (y) ? (x) : (y))",
}
"""What PPCG defines these macros as where it may use no extension of GNU C."""

_BYTES = {kind.value: kind.size_bytes for kind in ElementType}
_OTHER_SPELLINGS = {"char": ElementType.INT8.value}


@frozen
class SharedArray:
    """A shared array of a kernel: its declaration, and where it begins, in bytes."""

    name: str
    element_type: str
    extents: tuple[int, ...]
    place: int

    @property
    def bytes(self) -> int:
        """Its size."""
        size = _BYTES[self.element_type]
        for extent in self.extents:
            size *= extent
        return size


@frozen
class KernelText:
    """A kernel of a file: names of its parameters in order, and its shared arrays."""

    name: str
    parameters: tuple[str, ...]
    shared: tuple[SharedArray, ...]

    @property
    def shared_bytes(self) -> int:
        """Shared memory that a block of it has."""
        return max((array.place + array.bytes for array in self.shared), default=0)


@frozen
class KernelFile:
    """The kernels of a file in their order, and its text for a card and a CPU."""

    kernels: tuple[KernelText, ...]
    text: str


def own_type(words: str, names: Mapping[str, str] = MappingProxyType({})) -> str | None:
    """Return how a type of elements is spelled here, ``None`` for a name that is not known.

    Args:
        words: the type as PPCG spells it, which may be a name of the source's.
        names: what such names stand for.
    """
    for _ in names:
        words = names.get(words, words)
    words = _OTHER_SPELLINGS.get(words, words)
    return words if words in _BYTES else None


def _named_types(found: Sequence[Token]) -> dict[str, str]:
    """Return what each ``typedef`` of a text that is no structure stands for."""
    names: dict[str, str] = {}
    for place, token in enumerate(found):
        if token.text == "typedef":
            end = next((k for k in range(place, len(found)) if found[k].text in ";{"), place)
            *words, name = (one.text for one in found[place + 1 : end] or [token])
            names[name] = " ".join(words)
    return names


def kernel_names(text: str) -> tuple[str, ...]:
    """Return the names of the kernels of a file in their order, whatever else is in it."""
    words = [token.text for token in tokens(text)]
    return tuple(
        (words[place + 2 : place + 3] or ["?"])[0]
        for place, word in enumerate(words)
        if word == "__global__"
    )


def read_kernels(text: str) -> KernelFile:
    """Read a kernel file that PPCG wrote.

    Raises:
        NotUnderstoodError: it is of no known form.
    """
    found = tokens(text)
    kernels: list[KernelText] = []
    changes: list[tuple[int, int, str]] = []
    for place, token in enumerate(found):
        if token.kind == "directive":
            changes += _directive(token)
        if token.text == "__global__":
            kernel, inside = _kernel(found, place)
            kernels.append(kernel)
            changes.append((token.start, token.start, 'extern "C" '))
            changes += inside
    pieces: list[str] = []
    done = 0
    for start, end, instead in sorted(changes):
        pieces += [text[done:start], instead]
        done = end
    return KernelFile(kernels=tuple(kernels), text="".join((*pieces, text[done:])).strip() + "\n")


def _directive(token: Token) -> Iterator[tuple[int, int, str]]:
    words = token.text.split(maxsplit=2)
    if words[0] == "#include":
        yield token.start, token.end, ""
    elif words[0] == "#define" and words[1] in _PLAIN and words[2:][:1] != [_PLAIN[words[1]]]:
        plain = f"#define {words[1]} {_PLAIN[words[1]]}"
        text = f"#ifdef __CUDACC_RTC__\n{plain}\n#else\n{token.text}\n#endif"
        yield token.start, token.end, text


def _kernel(
    found: Sequence[Token], place: int
) -> tuple[KernelText, Iterator[tuple[int, int, str]]]:
    """Return a kernel, and what becomes of the declarations of its shared arrays."""
    name = found[place + 2] if place + 3 < len(found) else found[place]
    if found[place + 1].text != "void" or found[place + 3].text != "(":
        raise NotUnderstoodError(f"'{name.text}' is no kernel of a known form")
    close = closing(found, place + 3)
    parameters = _parameters(found[place + 4 : close], name.text)
    end = closing(found, close + 1)
    shared: list[SharedArray] = []
    spans: list[tuple[int, int]] = []
    for here in range(close + 1, end):
        if found[here].text == "__shared__":
            last = next(k for k in range(here, end) if found[k].text == ";")
            after = shared[-1].place + shared[-1].bytes if shared else 0
            shared.append(_shared(found[here + 1 : last], after, name.text, _named_types(found)))
            spans.append((found[here].start, found[last - 1].end))
    texts = (_declaration(array) for array in shared)
    changes = ((*span, text) for span, text in zip(spans, texts, strict=True))
    return KernelText(name=name.text, parameters=parameters, shared=tuple(shared)), changes


def _parameters(words: Sequence[Token], kernel: str) -> tuple[str, ...]:
    """Return the names of parameters, which come last in their declarations."""
    names: list[str] = []
    for place, token in enumerate(words):
        if token.text in ("[", "("):
            raise NotUnderstoodError(
                f"a parameter of {kernel} is an array of several dimensions; PPCG passes plain "
                "pointers without --no-linearize-device-arrays"
            )
        if place + 1 == len(words) or words[place + 1].text == ",":
            names.append(token.text)
    return tuple(names)


def _shared(
    words: Sequence[Token], after: int, kernel: str, names: Mapping[str, str]
) -> SharedArray:
    """Return a shared array from its declaration, placed after others; ``names`` are of types."""
    texts = [token.text for token in words]
    opening = texts.index("[") if "[" in texts else len(texts)
    element = own_type(" ".join(texts[: opening - 1]), names)
    name, extents = texts[opening - 1], texts[opening:]
    numbers = extents[1::3]
    regular = extents == [text for number in numbers for text in ("[", number, "]")]
    if element is None or not regular or not all(number.isdigit() for number in numbers):
        raise NotUnderstoodError(f"{kernel} declares '{' '.join(texts)}' in shared memory")
    size = _BYTES[element]
    return SharedArray(
        name=name,
        element_type=element,
        extents=tuple(map(int, numbers)),
        place=-(-after // size) * size,
    )


def _declaration(array: SharedArray) -> str:
    extents = "".join(f"[{extent}]" for extent in array.extents)
    return f"EATSS_SHARED_AT({array.place}, {array.element_type}, {array.name}, {extents})"
