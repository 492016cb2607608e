"""A PyTorch operator with gradients, made of loops in Python; its energy beside the stock operator.

    python examples/torch_operator.py                     # on the card
    python examples/torch_operator.py --device cpu -n 24  # checks values and gradients without one

The operator is one weighted five-point step of a grid. Its gradient is the same stencil on the
padded gradient of the result, so that one program serves both ways.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor

import eatss


@eatss.scop
def five_points(
    n: eatss.Param,
    m: eatss.Param,
    centre: eatss.f32,
    side: eatss.f32,
    u: eatss.f32["n + 2", "m + 2"],
    out: eatss.f32["n", "m"],
):
    for i in range(n):
        for j in range(m):
            out[i, j] = centre * u[i + 1, j + 1] + side * (
                u[i, j + 1] + u[i + 2, j + 1] + u[i + 1, j] + u[i + 1, j + 2]
            )


launch = eatss.jit(five_points)


@torch.library.custom_op("eatss_examples::five_points", mutates_args=())
def step(u: Tensor, centre: float, side: float) -> Tensor:
    """Return one step of a grid with a rim of one point, which the result does not have."""
    out = u.new_empty(u.shape[0] - 2, u.shape[1] - 2)
    launch(centre=centre, side=side, u=u, out=out)
    return out


@step.register_fake
def _(u: Tensor, centre: float, side: float) -> Tensor:
    return u.new_empty(u.shape[0] - 2, u.shape[1] - 2)


def _remember(ctx, inputs, output) -> None:
    _, ctx.centre, ctx.side = inputs


def _backward(ctx, grad: Tensor):
    padded = torch.nn.functional.pad(grad, (2, 2, 2, 2)).contiguous()
    return step(padded, ctx.centre, ctx.side), None, None


step.register_autograd(_backward, setup_context=_remember)


def stock(u: Tensor, centre: float, side: float) -> Tensor:
    """Return the same by the operator that PyTorch has."""
    weights = u.new_tensor([[0, side, 0], [side, centre, side], [0, side, 0]])
    return torch.nn.functional.conv2d(u[None, None], weights[None, None])[0, 0]


def largest_difference(size: int, device: str) -> float:
    """Compare values and gradients of both; return the largest difference."""
    torch.manual_seed(1)
    u = torch.rand(size + 2, size + 2, device=device, requires_grad=True)
    results = []
    for operator in (step, stock):
        u.grad = None
        out = operator(u, 0.5, 0.125)
        (out * out).sum().backward()
        results.append((out.detach(), u.grad.clone()))
    (mine, mine_grad), (theirs, theirs_grad) = results
    return max(float((mine - theirs).abs().max()), float((mine_grad - theirs_grad).abs().max()))


def measured(size: int, seconds: float) -> None:
    """Print time and energy of a step forwards and backwards, of both by turns."""
    u = torch.rand(size + 2, size + 2, device="cuda", requires_grad=True)
    grad = torch.rand(size, size, device="cuda")

    def once(operator) -> None:
        u.grad = None
        operator(u, 0.5, 0.125).backward(grad)

    rows = {}
    for name, operator in (("eatss", step), ("conv2d", stock)):
        for _ in range(3):
            once(operator)
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        once(operator)
        end.record()
        end.synchronize()
        count = max(1, int(seconds / (begin.elapsed_time(end) / 1e3)))
        with eatss.energy_meter() as meter:
            begin.record()
            for _ in range(count):
                once(operator)
            end.record()
            end.synchronize()
        time_ms = begin.elapsed_time(end) / count
        energy_j = meter.result.energy_j
        rows[name] = (time_ms, None if energy_j is None else 1e3 * energy_j / count)
    print(f"one step of {size} x {size} float32, forwards and backwards")
    for name, (time_ms, energy_mj) in rows.items():
        said = "no energy reading" if energy_mj is None else f"{energy_mj:9.3f} mJ"
        print(f"  {name:8s} {time_ms:8.4f} ms  {said}")
    if all(energy is not None for _, energy in rows.values()):
        ratio = [rows["eatss"][k] / rows["conv2d"][k] for k in (0, 1)]
        print(f"  eatss over conv2d: time {ratio[0]:.3f}, energy {ratio[1]:.3f}")


def main() -> int:
    """Check, and measure where there is a card."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("-n", "--size", type=int, default=8192)
    parser.add_argument("--seconds", type=float, default=2.0, help="of measuring each operator")
    given = parser.parse_args()
    on_card = given.device == "gpu"
    worst = largest_difference(min(given.size, 512), "cuda" if on_card else "cpu")
    print(f"largest difference of values and gradients: {worst:.1e}")
    if on_card:
        measured(given.size, given.seconds)
    return 0 if worst < 1e-5 else 1


if __name__ == "__main__":
    raise SystemExit(main())
