"""Loads of whole matrices from shared memory, into the lanes of a warp.

A matrix is 8 rows of 16 bytes. Each lane names one row, that with its own number, and gets a word
of each matrix: of row ``lane / 4`` or, where matrices of halves are turned, of column ``lane / 4``.
That is how tensor cores want them [PTX ISA, "ldmatrix"].

Bytes are turned by twos, so a lane gets those of two columns, and parts them.
"""

from collections.abc import Mapping
from dataclasses import replace

from eatss.analysis.structure import MATRIX_ROWS, VECTOR_BYTES, WORD_BYTES
from eatss.lower.instructions.products import LANES_OF_A_BOX, QUADS, held_by_lanes
from eatss.lower.kernel.instruction import (
    WORD,
    Capability,
    Coordinate,
    Distribution,
    Instruction,
    Operand,
)
from eatss.polyhedral.expression import ElementType

ROW = MATRIX_ROWS
"""Rows of a matrix."""

_LOAD = """\
template <typename Element>
__device__ __forceinline__ void eatss_load_WAYmatrices(
    unsigned int &d0, unsigned int &d1, const Element *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.TRANSshared.b16 {%0, %1}, [%2];"
                 : "=r"(d0), "=r"(d1)
                 : "r"((unsigned int)__cvta_generic_to_shared(row))
                 : "memory");
}
template <typename Element>
__device__ __forceinline__ void eatss_load_WAYmatrices(
    unsigned int &d0, unsigned int &d1, unsigned int &d2, unsigned int &d3, const Element *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.TRANSshared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3)
                 : "r"((unsigned int)__cvta_generic_to_shared(row))
                 : "memory");
}
"""

_DEFINITIONS = f"""\

// Of each matrix of 8 rows of 16 bytes, of which lanes name one each, lane / 4 is the row of which
// a lane gets a word. Of turned ones of 8 x 8 halves it is the column.
{_LOAD.replace("WAY", "").replace("TRANS", "")}\
{_LOAD.replace("WAY", "turned_").replace("TRANS", "trans.")}"""

_TURNED_BYTES = """\
// Of 32 rows of 16 bytes a lane gets words of two columns: each of the rows 2 * (lane % 4), the
// next one, and both 8 later, these first if lane % 4 is 2 or 3; and of those 16 later. So the rows
// of a matrix may be such that they are in different banks.
template <typename Element>
__device__ __forceinline__ void eatss_load_turned_bytes(
    unsigned int &d0, unsigned int &d1, unsigned int &d2, unsigned int &d3, const Element *row)
{
    unsigned int own[4], lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    const unsigned int even = lane & 2 ? 0x2064 : 0x6420, odd = even + 0x1111;
    eatss_load_turned_matrices(own[0], own[1], own[2], own[3], row);
    d0 = __byte_perm(own[0], own[1], even);
    d1 = __byte_perm(own[2], own[3], even);
    d2 = __byte_perm(own[0], own[1], odd);
    d3 = __byte_perm(own[2], own[3], odd);
}
"""

_CPU_DEFINITIONS = """\

// The same: lanes read their rows, which are passed on as by shuffles.
#define eatss_load_matrices(...) eatss_load_matrices_at(__LINE__, false, __VA_ARGS__)
#define eatss_load_turned_matrices(...) eatss_load_matrices_at(__LINE__, true, __VA_ARGS__)
#define eatss_load_turned_bytes(...) eatss_load_turned_bytes_at(__LINE__, __VA_ARGS__)
template <typename Element, int16_t group>
EATSS_UNSEEN inline eatss::Passed<Element, 16 / sizeof(Element)> eatss_rows_named(
    const eatss::Tracked<Element, group> *row, int line)
{
    eatss::whole_vector(row);
    Element own[16 / sizeof(Element)];
    for (size_t at = 0; at < 16 / sizeof(Element); at++)
        own[at] = row[at].read();
    return eatss::Passed<Element, 16 / sizeof(Element)>(own, line);
}
template <typename Element>
EATSS_UNSEEN_INLINE inline unsigned int eatss_bits(const Element &element)
{
    unsigned int bits = 0;
    memcpy(&bits, &element, sizeof element);
    return bits;
}
template <int count, typename Element, int16_t group>
EATSS_UNSEEN inline void eatss_load_matrices_at(
    int line, bool turned, unsigned int *const (&d)[count],
    const eatss::Tracked<Element, group> *row)
{
    const auto all = eatss_rows_named(row, line);
    const int of_a_word = 4 / sizeof(Element), far = all.lane / 4;
    for (int matrix = 0; matrix < count; matrix++) {
        eatss::changes(*d[matrix]);
        *d[matrix] = 0;
        for (int at = 0; at < of_a_word; at++) {
            const int near = of_a_word * (all.lane % 4) + at;
            const Element *from = all.of(8 * matrix + (turned ? near : far));
            *d[matrix] |= eatss_bits(from[turned ? far : near]) << 32 / of_a_word * at;
        }
    }
}
template <typename Element, int16_t group>
EATSS_UNSEEN inline void eatss_load_matrices_at(
    int line, bool turned, unsigned int &d0, unsigned int &d1,
    const eatss::Tracked<Element, group> *row)
{
    unsigned int *const d[2] = {&d0, &d1};
    eatss_load_matrices_at(line, turned, d, row);
}
template <typename Element, int16_t group>
EATSS_UNSEEN inline void eatss_load_matrices_at(
    int line, bool turned, unsigned int &d0, unsigned int &d1, unsigned int &d2, unsigned int &d3,
    const eatss::Tracked<Element, group> *row)
{
    unsigned int *const d[4] = {&d0, &d1, &d2, &d3};
    eatss_load_matrices_at(line, turned, d, row);
}
template <typename Element, int16_t group>
EATSS_UNSEEN inline void eatss_load_turned_bytes_at(
    int line, unsigned int &d0, unsigned int &d1, unsigned int &d2, unsigned int &d3,
    const eatss::Tracked<Element, group> *row)
{
    const auto all = eatss_rows_named(row, line);
    unsigned int *const d[4] = {&d0, &d1, &d2, &d3};
    const int row_of_bytes = all.lane / 4, quad = all.lane % 4;
    for (int word = 0; word < 4; word++) {
        eatss::changes(*d[word]);
        *d[word] = 0;
        for (int at = 0; at < 4; at++) {
            const int from = 16 * (word % 2) + 8 * (at / 2 ^ quad / 2) + 2 * quad + at % 2;
            *d[word] |= eatss_bits(all.of(from)[2 * row_of_bytes + word / 2]) << 8 * at;
        }
    }
}
"""


def _loads(
    name: str,
    element_type: ElementType,
    held: Distribution,
    extents: tuple[int, int],
    function: str,
) -> Instruction:
    row = VECTOR_BYTES // element_type.size_bytes
    own_row = held_by_lanes(
        {"row": 4, "quad": 1}, {"column": 1}, slots=(Coordinate("column", row),)
    )
    return Instruction(
        name=name,
        what="loads of matrices",
        operands=(
            Operand(name="d", role="out", held=held, element_type=element_type),
            Operand(name="rows", held=own_row, beside=row, element_type=element_type),
        ),
        instances=(("r", extents[0]), ("c", extents[1])),
        lanes=LANES_OF_A_BOX,
        target="d[r, c]",
        value="rows[r, c]",
        element_types=(WORD,),
        exact=True,
        together=True,
        cuda=f"eatss_load_{function}({{d}}, &{{rows}});",
        helpers=(_DEFINITIONS,),
        definitions=_TURNED_BYTES * (function == "turned_bytes"),
        cpu_definitions=_CPU_DEFINITIONS,
        capabilities=(Capability(least=(7, 5)),),
    )


def _matrices(count: int, element_type: ElementType, *, turned: bool) -> Instruction:
    each = WORD_BYTES // element_type.size_bytes
    slots = (Coordinate("matrix", count), Coordinate("element", each))
    near, far = {"quad": each, "element": 1}, {"row": 1}
    points = ({**near, "matrix": ROW}, far) if turned else ({**far, "matrix": ROW}, near)
    name = f"ldmatrix_x{count}{'_trans' * turned}{'_bytes' * (each > 2)}"
    extents = (ROW * count, ROW if turned else VECTOR_BYTES // element_type.size_bytes)
    held = held_by_lanes(*points, slots=slots)
    return _loads(name, element_type, held, extents, f"{'turned_' * turned}matrices")


TURNED_BYTES = _loads(
    "ldmatrix_x4_trans_bytes",
    ElementType.UINT8,
    replace(
        held_by_lanes(
            {"later": 16, "far": 8, "quad": 2, "next": 1},
            {"row": 2, "column": 1},
            slots=tuple(Coordinate(name, 2) for name in ("column", "later", "far", "next")),
        ),
        flips=("far", QUADS),
    ),
    (4 * ROW, VECTOR_BYTES),
    "turned_bytes",
)
"""A load of 32 rows of bytes, of whose 16 columns a lane gets two that follow each other.

A lane wants four steps of a sum that follow each other. So steps are named in the order 0, 1, 4, 5,
10, 11, 14, 15; 2, 3, 6, 7, 8, 9, 12, 13; …, and eight of them are in different banks where rows are
an odd number of vectors.
"""

LOADS: Mapping[int, tuple[Instruction, ...]] = {
    2: tuple(
        _matrices(count, ElementType.HALF, turned=turned)
        for count in (4, 2)
        for turned in (False, True)
    ),
    1: (
        _matrices(4, ElementType.UINT8, turned=False),
        TURNED_BYTES,
        _matrices(2, ElementType.UINT8, turned=False),
    ),
}
"""Loads of elements of so many bytes, signed or not; those of the most matrices first."""
