"""Attention is three launches: scores, their rows, and what rows weigh, whatever rows they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lower.checking import checked
from tests.lower.test_row_blocks import demand

pytestmark = pytest.mark.usefixtures("analysed_once")

ATTENTION = """
#ifndef H
#define H 8
#endif
#ifndef N
#define N 512
#endif
#ifndef M
#define M 1536
#endif
#ifndef D
#define D 64
#endif
float expf(float), fmaxf(float, float);
void attention(float O[H][N][D], float Q[H][N][D], float K[H][M][D], float V[H][M][D],
               float S[H][N][M], float m[H][N], float l[H][N])
{
#pragma scop
    for (int h = 0; h < H; h++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < END; j++) {
                S[h][i][j] = 0;
                for (int d = 0; d < D; d++)
                    S[h][i][j] += Q[h][i][d] * K[h][j][d];
                S[h][i][j] *= 0.125f;
            }
    for (int h = 0; h < H; h++)
        for (int i = 0; i < N; i++) {
            m[h][i] = S[h][i][0];
            for (int j = 1; j < END; j++)
                m[h][i] = fmaxf(m[h][i], S[h][i][j]);
            l[h][i] = 0;
            for (int j = 0; j < END; j++) {
                S[h][i][j] = expf(S[h][i][j] - m[h][i]);
                l[h][i] += S[h][i][j];
            }
        }
    for (int h = 0; h < H; h++)
        for (int i = 0; i < N; i++)
            for (int d = 0; d < D; d++) {
                O[h][i][d] = 0;
                for (int j = 0; j < END; j++)
                    O[h][i][d] += S[h][i][j] * V[h][j][d];
                O[h][i][d] /= l[h][i];
            }
#pragma endscop
}
"""
CAUSAL = ATTENTION.replace("END", "i + 1").replace("[M]", "[N]")


@pytest.mark.parametrize("source", [CAUSAL, ATTENTION.replace("END", "M")])
def test_attention_is_three_launches(source: str, tmp_path: Path) -> None:
    sizes = ({"H": 2, "N": 37, "D": 9}, {"H": 1, "N": 1, "D": 1}, {"H": 3, "N": 2, "D": 3})
    more = [{"M": 70}, {"M": 1}, {"M": 5}] if source is not CAUSAL else [{}] * 3
    each = [{**one, **own} for one, own in zip(sizes, more, strict=True)]
    program = checked(source, tmp_path / "made", each)
    assert len(program.kernels) == 3


def test_rows_of_a_triangle_move_its_elements() -> None:
    run, found = demand(CAUSAL, [4], 64, 512, loops=2, whole=1)
    assert [own.array for own in run.registers.kept] == ["S"]
    (moved,) = found.dram_bytes
    assert moved == pytest.approx(2 * 8 * 512 * 513 // 2 * 4, rel=0.01)  # read and written
