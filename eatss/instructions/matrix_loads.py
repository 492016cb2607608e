"""Loads of whole matrices of halves from shared memory, into the lanes of a warp.

A matrix is 8 rows of 8 halves. Each lane names one row, that with its own number, and gets two
elements of each matrix in a word: of a row ``lane / 4`` or, where matrices are turned, of a column.
That is how tensor cores want them [PTX ISA, "ldmatrix"].
"""

from eatss.analysis.structure import MATRIX_ROWS
from eatss.instructions.matrices import LANES_OF_A_BOX, PAIR, held_by_lanes
from eatss.kernel.distribution import Coordinate
from eatss.kernel.instruction import WORD, Capability, Instruction, Operand
from eatss.scops import ElementType

ROW = MATRIX_ROWS
"""Halves of a row of a matrix, which has as many rows."""

_DEFINITIONS = """\

// Of each matrix of 8 x 8 halves, of whose rows lanes name one each, lane / 4 is the row of which a
// lane gets two neighbours. Of turned ones it is the column.
__device__ __forceinline__ void eatss_load_matrices(
    unsigned int &d0, unsigned int &d1, const eatss_half *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(d0), "=r"(d1)
                 : "r"((unsigned int)__cvta_generic_to_shared(row))
                 : "memory");
}
__device__ __forceinline__ void eatss_load_matrices(
    unsigned int &d0, unsigned int &d1, unsigned int &d2, unsigned int &d3, const eatss_half *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3)
                 : "r"((unsigned int)__cvta_generic_to_shared(row))
                 : "memory");
}
__device__ __forceinline__ void eatss_load_turned_matrices(
    unsigned int &d0, unsigned int &d1, const eatss_half *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(d0), "=r"(d1)
                 : "r"((unsigned int)__cvta_generic_to_shared(row))
                 : "memory");
}
__device__ __forceinline__ void eatss_load_turned_matrices(
    unsigned int &d0, unsigned int &d1, unsigned int &d2, unsigned int &d3, const eatss_half *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3)
                 : "r"((unsigned int)__cvta_generic_to_shared(row))
                 : "memory");
}
"""

_CPU_DEFINITIONS = """\

// The same: lanes read their rows, which are passed on as by shuffles.
#define eatss_load_matrices(...) eatss_load_matrices_at(__LINE__, false, __VA_ARGS__)
#define eatss_load_turned_matrices(...) eatss_load_matrices_at(__LINE__, true, __VA_ARGS__)
template <int count, int16_t group>
inline void eatss_load_matrices_at(
    int line, bool turned, unsigned int *const (&d)[count],
    const eatss::Tracked<eatss_half, group> *row)
{
    eatss::whole_vector(row);
    eatss_half own[8];
    for (int at = 0; at < 8; at++)
        own[at] = row[at].read();
    const eatss::Passed<eatss_half, 8> all(own, line);
    for (int matrix = 0; matrix < count; matrix++) {
        *d[matrix] = 0;
        for (int pair = 0; pair < 2; pair++) {
            const int far = all.lane / 4, near = 2 * (all.lane % 4) + pair;
            const eatss_half *from = all.of(8 * matrix + (turned ? near : far));
            *d[matrix] |= (unsigned int)from[turned ? far : near].bits << 16 * pair;
        }
    }
}
template <int16_t group>
inline void eatss_load_matrices_at(
    int line, bool turned, unsigned int &d0, unsigned int &d1,
    const eatss::Tracked<eatss_half, group> *row)
{
    unsigned int *const d[2] = {&d0, &d1};
    eatss_load_matrices_at(line, turned, d, row);
}
template <int16_t group>
inline void eatss_load_matrices_at(
    int line, bool turned, unsigned int &d0, unsigned int &d1, unsigned int &d2, unsigned int &d3,
    const eatss::Tracked<eatss_half, group> *row)
{
    unsigned int *const d[4] = {&d0, &d1, &d2, &d3};
    eatss_load_matrices_at(line, turned, d, row);
}
"""


def _loads(count: int, *, turned: bool) -> Instruction:
    slots = (Coordinate("matrix", count), PAIR)
    along = {"quad": 2, "pair": 1}
    held = (
        held_by_lanes({**along, "matrix": ROW}, {"row": 1}, slots=slots)
        if turned
        else held_by_lanes({"row": 1, "matrix": ROW}, along, slots=slots)
    )
    own_row = held_by_lanes(
        {"row": 4, "quad": 1}, {"column": 1}, slots=(Coordinate("column", ROW),)
    )
    return Instruction(
        name=f"ldmatrix_x{count}{'_trans' * turned}",
        what="loads of matrices",
        operands=(
            Operand(name="d", role="out", held=held),
            Operand(name="rows", held=own_row, beside=ROW),
        ),
        instances=(("r", ROW * count), ("c", ROW)),
        lanes=LANES_OF_A_BOX,
        target="d[r, c]",
        value="rows[r, c]",
        element_types=(WORD,),
        factor_type=ElementType.HALF,
        exact=True,
        together=True,
        cuda=f"eatss_load_{'turned_' * turned}matrices({{d}}, &{{rows}});",
        definitions=_DEFINITIONS,
        cpu_definitions=_CPU_DEFINITIONS,
        capabilities=(Capability(least=(7, 5)),),
    )


MATRIX_LOADS = {
    (count, turned): _loads(count, turned=turned) for count in (2, 4) for turned in (False, True)
}
"""Loads of so many matrices, and whether they are turned."""
