"""PPCG's kernel file read, and written again so that a card and a CPU take it.

The code of the kernels stays as PPCG wrote it, token by token, but for four things: a kernel is
``extern "C"``, so that it is found by its name; shared arrays are declared by a macro, so that a
CPU can watch them; the header, which has nothing but declarations, is left out; and for NVRTC,
which knows no statements in expressions, the least and the largest of two have a plain macro.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType

from eatss.base.frozen import frozen
from eatss.polyhedral.expression import ElementType
from eatss.ppcg_build.integers import NotUnderstoodError, Reader
from eatss.program.tokens import Token, tokens

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
        return _BYTES[self.element_type] * prod(self.extents)


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
    return _File(tokens(text)).read(text)


class _File(Reader):
    """Reads a file from its start: names of types, directives, kernels and their shared arrays."""

    def __init__(self, found: Sequence[Token]) -> None:
        super().__init__(found)
        self._types: dict[str, str] = {}
        self._kernels: list[KernelText] = []
        self._changes: list[tuple[int, int, str]] = []

    def read(self, text: str) -> KernelFile:
        while self.kind():
            token = self.tokens[self.place]
            self.place += 1
            if token.kind == "directive":
                self._directive(token)
            elif token.text == "typedef":
                *words, name = self._upto(";{") or [token.text]
                self._types[name] = " ".join(words)
            elif token.text == "__global__":
                self._changes.append((token.start, token.start, 'extern "C" '))
                self._kernel()
            elif token.text == "__shared__" and self._kernels:
                self._shared(token)
        pieces: list[str] = []
        done = 0
        for start, end, instead in self._changes:
            pieces += [text[done:start], instead]
            done = end
        whole = "".join((*pieces, text[done:])).strip() + "\n"
        return KernelFile(kernels=tuple(self._kernels), text=whole)

    def _upto(self, ends: str) -> list[str]:
        """Read the tokens before the next one of some."""
        begun = self.place
        while self.kind() and self.text() not in ends:
            self.place += 1
        return [token.text for token in self.tokens[begun : self.place]]

    def _directive(self, token: Token) -> None:
        words = token.text.split(maxsplit=2)
        if words[0] == "#include":
            self._changes.append((token.start, token.end, ""))
        elif words[0] == "#define" and words[1] in _PLAIN and words[2:][:1] != [_PLAIN[words[1]]]:
            plain = f"#define {words[1]} {_PLAIN[words[1]]}"
            text = f"#ifdef __CUDACC_RTC__\n{plain}\n#else\n{token.text}\n#endif"
            self._changes.append((token.start, token.end, text))

    def _kernel(self) -> None:
        name = self.text(1)
        if not self.takes("void") or self.text(1) != "(":
            raise NotUnderstoodError(f"'{name}' is no kernel of a known form")
        self.place += 2
        parameters: list[str] = []
        while self.kind() and not self.takes(")"):
            *_, parameter = self._upto(",)[(") or [""]
            if self.text() in ("[", "("):
                raise NotUnderstoodError(
                    f"a parameter of {name} is an array of several dimensions; PPCG passes plain "
                    "pointers without --no-linearize-device-arrays"
                )
            parameters.append(parameter)
            self.takes(",")
        self._kernels.append(KernelText(name=name, parameters=tuple(parameters), shared=()))

    def _shared(self, token: Token) -> None:
        """Read a shared array, placed after those before it, and have a macro declare it."""
        kernel = self._kernels[-1]
        declared = self._upto(";")
        opening = declared.index("[") if "[" in declared else len(declared)
        element = own_type(" ".join(declared[: opening - 1]), self._types)
        name, extents = declared[opening - 1], declared[opening:]
        numbers = extents[1::3]
        regular = extents == [text for number in numbers for text in ("[", number, "]")]
        if element is None or not regular or not all(number.isdigit() for number in numbers):
            raise NotUnderstoodError(
                f"{kernel.name} declares '{' '.join(declared)}' in shared memory"
            )
        size = _BYTES[element]
        array = SharedArray(
            name=name,
            element_type=element,
            extents=tuple(map(int, numbers)),
            place=-(-kernel.shared_bytes // size) * size,
        )
        self._kernels[-1] = replace(kernel, shared=(*kernel.shared, array))
        text = f"EATSS_SHARED_AT({array.place}, {element}, {name}, {''.join(extents)})"
        self._changes.append((token.start, self.tokens[self.place - 1].end, text))
